#include "kernels/attention/attention_strips.h"

#include "kernels/attention/attention_operands.h"
#include "kernels/kernels.h"
#include "kernels/plan/plan_builder.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace attention;
using Mask = AttentionConfig::Mask;

constexpr int64_t kStripRows = 128;  // a block's: of the least strip, and a divisor of the others

// Queries `first` to `first` + `rows`, and the keys that one of them sees.
struct Strip {
  int64_t first, rows, keys;
};

std::vector<Strip> strips_of(const AttentionConfig& c, int64_t rows, bool skips_hidden_keys) {
  std::vector<Strip> strips;
  for (int64_t first = 0; first < c.queries; first += rows) {
    const int64_t end = std::min(first + rows, c.queries);
    strips.push_back({first, end - first, skips_hidden_keys ? std::min(c.keys, end) : c.keys});
  }
  return strips;
}

// Of a strip with so many scores at most.
int64_t rows_of(const AttentionConfig& c, int64_t most_scores) {
  const int64_t fit = most_scores / (c.batch * c.heads * c.keys);
  return std::max(fit / kStripRows, int64_t{1}) * kStripRows;
}

// Of causal attention forward: strips leave out what their queries do not see, three in eight of
// four, where the products of each still keep a GPU busy (1x8x1024x64 on an H100: four strips 0.30
// ms, one 0.15).
int64_t causal_rows_of(const AttentionConfig& c, int64_t most_scores) {
  constexpr int64_t kStrips = 4, kBusySteps = int64_t{1} << 29;
  const int64_t steps = c.batch * c.heads * c.keys * c.depth;
  const int64_t least = std::max(ceil_div(c.queries, kStrips), ceil_div(kBusySteps, steps));
  return std::min(rows_of(c, most_scores), ceil_div(least, kStripRows) * kStripRows);
}

// What both plans do strip by strip. A slot of rows is one of the plan's operands where a strip is
// all there is, else of a part of the workspace.
class Writer {
 public:
  Writer(DeviceClass device_class, const AttentionConfig& config, uint32_t operands,
         uint32_t mask_slot)
      : device_class_(device_class),
        c(config),
        groups_(c.batch * c.heads),
        builder_(operands),
        mask_(mask_slot) {
    if (c.mask != Mask::kKeep) return;
    mask_ = builder_.add_floats(mask_elements(c));
    call("attention_keep", keep_arguments(0, 1, c), {mask_slot, mask_});
  }

  // The rows of a strip of a tensor [bh][query][depth].
  uint32_t rows_of(uint32_t slot, const Strip& strip, int64_t depth) {
    if (strip.rows == c.queries) return slot;
    const uint32_t part = add_rows(strip, depth);
    builder_.append(plan_slice(device_class_, tensor(c.queries, depth),
                               {{0, strip.first, 0}, {1, 1, 1}}, tensor(strip.rows, depth)),
                    {slot, part});
    return part;
  }
  // Where they are written, for join_rows.
  uint32_t place_of(uint32_t slot, const Strip& strip, int64_t depth) {
    return strip.rows == c.queries ? slot : add_rows(strip, depth);
  }
  void join_rows(const std::vector<Strip>& strips, std::vector<uint32_t> parts, uint32_t slot,
                 int64_t depth) {
    if (strips.size() == 1) return;
    std::vector<TensorType> types;
    for (const Strip& strip : strips) types.push_back(tensor(strip.rows, depth));
    parts.push_back(slot);
    builder_.append(plan_concat(device_class_, types, 1, tensor(c.queries, depth)), parts);
  }

  // Room for the scores of the first strip, which is the largest where all see all keys.
  uint32_t add_scores(const std::vector<Strip>& strips) {
    int64_t most = 0;
    for (const Strip& strip : strips) most = std::max(most, strip.rows * strip.keys);
    return builder_.add_floats(groups_ * most);
  }
  uint32_t add_keys(int64_t depth) { return builder_.add_floats(groups_ * c.keys * depth); }

  // scores = x y', of rows of a strip and of all keys.
  void multiply(uint32_t x, uint32_t y, int64_t depth, const Strip& strip, uint32_t scores) {
    MatmulConfig product{strip.rows, strip.keys, depth, false, true};
    product.batch = {{groups_, strip.rows * depth, c.keys * depth, strip.rows * strip.keys}};
    builder_.append(plan_matmul(device_class_, product), {x, y, scores});
  }
  // rows = scores y
  void sum_keys(uint32_t scores, uint32_t y, int64_t depth, const Strip& strip, uint32_t rows) {
    MatmulConfig product{strip.rows, depth, strip.keys};
    product.batch = {{groups_, strip.rows * strip.keys, c.keys * depth, strip.rows * depth}};
    builder_.append(plan_matmul(device_class_, product), {scores, y, rows});
  }
  // keys = scores' x, and what was there before from slot `before`, unless it is `keys`.
  void sum_rows(uint32_t scores, uint32_t x, int64_t depth, const Strip& strip, uint32_t before,
                uint32_t keys) {
    MatmulConfig product{c.keys, depth, strip.rows, true};
    product.batch = {{groups_, strip.rows * c.keys, strip.rows * depth, c.keys * depth}};
    product.has_residual = before != keys;
    std::vector<uint32_t> slots{scores, x, keys};
    if (product.has_residual) slots.insert(slots.end() - 1, before);
    builder_.append(plan_matmul(device_class_, product), slots);
  }

  // And lse. Weights may lie where the scores do on GPUs; vectors of CPUs read some of them again.
  void make_softmax(uint32_t scores, const Strip& strip, uint32_t lse, uint32_t weights) {
    const int64_t rows = groups_ * strip.rows;
    const auto operand = [&](uint32_t slot) {
      return dense_operand(slot, DType::kF32, {rows, strip.keys});
    };
    std::vector<HostArg> args{operand(0), checked_int32(strip.first), checked_int32(strip.rows),
                              diagonal_of(c), c.scale};
    call_masked("attention_strip_softmax", args, {scores},
                {dense_operand(1, DType::kF32, {rows}), operand(2)}, {lse, weights});
  }
  // Where they lie.
  void make_weights(uint32_t scores, uint32_t lse, const Strip& strip) {
    std::vector<HostArg> args{scores_operand(0, strip), lines_operand(1, strip),
                              checked_int32(strip.first), diagonal_of(c), c.scale};
    call_masked("attention_strip_weights", args, {scores, lse}, {scores_operand(2, strip)},
                {scores});
  }
  void make_ds(uint32_t weights, uint32_t products, uint32_t delta, const Strip& strip) {
    call("attention_strip_ds",
         {scores_operand(0, strip), scores_operand(1, strip), lines_operand(2, strip), c.scale,
          scores_operand(3, strip)},
         {weights, products, delta, products});
  }

  Plan finish() { return builder_.finish(); }

 private:
  TensorType tensor(int64_t rows, int64_t depth) const {
    return {DType::kF32, {groups_, rows, depth}};
  }
  uint32_t add_rows(const Strip& strip, int64_t depth) {
    return builder_.add_floats(groups_ * strip.rows * depth);
  }
  Operand scores_operand(uint32_t slot, const Strip& strip) const {
    return dense_operand(slot, DType::kF32, {groups_, strip.rows, strip.keys});
  }
  Operand lines_operand(uint32_t slot, const Strip& strip) const {
    return dense_operand(slot, DType::kF32, {groups_, strip.rows});
  }

  void call(const std::string& kernel, const std::vector<HostArg>& args,
            const std::vector<uint32_t>& slots) {
    Recorder recorder;
    recorder.call(kernel, device_class_, args);
    builder_.append(recorder.finish(), slots);
  }
  // A kernel that has a variant with a mask. Its last operands, `outs`, go to the slots `results`.
  void call_masked(std::string kernel, std::vector<HostArg> args, std::vector<uint32_t> slots,
                   std::vector<Operand> outs, const std::vector<uint32_t>& results) {
    if (c.mask != Mask::kNone) {
      kernel += "_mask";
      args.push_back(mask_operand(outs[0].slot, c));
      slots.push_back(mask_);
      for (Operand& out : outs) ++out.slot;
    }
    args.insert(args.end(), outs.begin(), outs.end());
    slots.insert(slots.end(), results.begin(), results.end());
    call(kernel, args, slots);
  }

  const DeviceClass device_class_;
  const AttentionConfig& c;
  const int64_t groups_;
  PlanBuilder builder_;
  uint32_t mask_;
};

}  // namespace

bool suits_strips(const AttentionConfig& c) {
  constexpr int64_t kLeastSteps = 4096;  // of a query's scores; fewer are done before launches are
  return std::min({c.queries, c.depth, c.value_depth}) > 0 && c.keys * c.depth >= kLeastSteps;
}

Plan plan_attention_strips(DeviceClass device_class, const AttentionConfig& c,
                           int64_t most_scores) {
  const ForwardSlots at(c);
  Writer w(device_class, c, at.workspace, at.mask);
  const int64_t rows = c.causal ? causal_rows_of(c, most_scores) : rows_of(c, most_scores);
  const std::vector<Strip> strips = strips_of(c, rows, c.causal);
  const uint32_t scores = w.add_scores(strips),
                 weights = device_class == DeviceClass::kGpu ? scores : w.add_scores(strips);
  std::vector<uint32_t> outs, lses;
  for (const Strip& strip : strips) {
    outs.push_back(w.place_of(at.out, strip, c.value_depth));
    lses.push_back(w.place_of(at.lse, strip, 1));
    w.multiply(w.rows_of(at.q, strip, c.depth), at.k, c.depth, strip, scores);
    w.make_softmax(scores, strip, lses.back(), weights);
    w.sum_keys(weights, at.v, c.value_depth, strip, outs.back());
  }
  w.join_rows(strips, outs, at.out, c.value_depth);
  w.join_rows(strips, lses, at.lse, 1);
  return w.finish();
}

Plan plan_attention_grad_strips(const AttentionConfig& c, int64_t most_scores) {
  const GradSlots at(c);
  Writer w(DeviceClass::kGpu, c, at.workspace, at.mask);
  const std::vector<Strip> strips = strips_of(c, rows_of(c, most_scores / 2), false);
  const uint32_t weights = w.add_scores(strips), ds = w.add_scores(strips);
  // Sums so far, which the next strip's are added to on their way to the other, the last ones to
  // the result.
  struct Sums {
    uint32_t result;
    int64_t depth;
    uint32_t last = 0, other = 0;
  };
  Sums dk{at.dk, c.depth}, dv{at.dv, c.value_depth};
  if (strips.size() > 1) {
    for (Sums* sums : {&dk, &dv}) sums->last = w.add_keys(sums->depth);
  }
  if (strips.size() > 2) {
    for (Sums* sums : {&dk, &dv}) sums->other = w.add_keys(sums->depth);
  }
  const auto add = [&](Sums& sums, uint32_t scores, uint32_t rows, const Strip& strip) {
    const bool is_first = strip.first == 0, is_last = strip.first + strip.rows == c.queries;
    const uint32_t to = is_last ? sums.result : is_first ? sums.last : sums.other;
    w.sum_rows(scores, rows, sums.depth, strip, is_first ? to : sums.last, to);
    if (!is_first) std::swap(sums.last, sums.other);
  };
  std::vector<uint32_t> dqs;
  for (const Strip& strip : strips) {
    const uint32_t q = w.rows_of(at.q, strip, c.depth),
                   dout = w.rows_of(at.dout, strip, c.value_depth);
    w.multiply(q, at.k, c.depth, strip, weights);
    w.make_weights(weights, w.rows_of(at.lse, strip, 1), strip);
    add(dv, weights, dout, strip);
    w.multiply(dout, at.v, c.value_depth, strip, ds);
    w.make_ds(weights, ds, w.rows_of(at.delta, strip, 1), strip);
    add(dk, ds, q, strip);
    dqs.push_back(w.place_of(at.dq, strip, c.depth));
    w.sum_keys(ds, at.k, c.depth, strip, dqs.back());
  }
  w.join_rows(strips, dqs, at.dq, c.depth);
  return w.finish();
}

}  // namespace ballast::kernels
