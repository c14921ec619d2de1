#include "kernels/rows/fuse_rows.h"

#include "kernels/pointwise/fuse.h"
#include "kernels/pointwise/loops.h"
#include "kernels/pointwise/pointwise_recipe.h"
#include "kernels/recipe/jit_kernel.h"
#include "kernels/reduce/axis.h"
#include "kernels/reduce/axis_recipe.h"
#include "kernels/reduce/prefetch.h"
#include "kernels/softmax/softmax_line.h"

#include <algorithm>
#include <optional>
#include <set>

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;
using Halide::Expr;
using Halide::Func;

struct RowReduction {
  const char* op;
  FoldKind kind;
  bool is_mean;
};
constexpr RowReduction kReductions[] = {{"reduce_sum", FoldKind::kSum, false},
                                        {"reduce_mean", FoldKind::kSum, true},
                                        {"reduce_max", FoldKind::kLargest, false},
                                        {"reduce_min", FoldKind::kLeast, false}};

const RowReduction* find_reduction(const std::string& op) {
  for (const RowReduction& one : kReductions) {
    if (op == one.op) return &one;
  }
  return nullptr;
}

bool is_float(DType dtype) { return dtype == DType::kF32 || is_narrow_float(dtype); }

bool is_softmax(const std::string& op) { return op == "softmax" || op == "log_softmax"; }

bool is_row_step(const FusedStep& step, const std::vector<DType>& args) {
  if (!is_row_op(step.op)) return is_pointwise_step(step, args);
  return args.size() == 1 && is_float(args[0]) && step.type.dtype == args[0];
}

// Elements from one row of `shape` to the next; none where the rows do not lie a constant apart.
std::optional<int64_t> row_stride(const Shape& input, const Shape& shape) {
  return merged_stride(shape, broadcast_strides("fused_rows", input, shape), 0, shape.size() - 1);
}

// The rows of a chain and how its inputs lie in them.
struct Rows {
  explicit Rows(const FusedPointwise& fused) {
    Shape shape;
    for (const TensorType& input : fused.inputs) {
      if (input.shape.size() > shape.size())
        shape.insert(shape.begin(), input.shape.size() - shape.size(), 1);
      for (size_t i = 1; i <= input.shape.size(); ++i) {
        int64_t& extent = shape[shape.size() - i];
        if (extent == 1) extent = input.shape[input.shape.size() - i];
      }
    }
    if (!are_fusable_rows(shape)) {
      fail(Code::kInvalidArgument, "[fused_rows] no rows of whole vectors: {}", to_string(shape));
    }
    length = shape.back();
    count = elements_of(shape) / length;
    for (const TensorType& input : fused.inputs) {
      const auto step = row_stride(input.shape, shape);
      if (!step) {
        fail(Code::kInvalidArgument, "[fused_rows] {} does not lie in rows of {}",
             to_string(input.shape), to_string(shape));
      }
      strides.push_back({broadcast_strides("fused_rows", input.shape, shape).back(), *step});
    }
  }

  int64_t length = 0, count = 0;
  std::vector<std::vector<int64_t>> strides;  // of each input: along a row, from row to row
};

// Builds the kernel of one chain: a Func per step, of (r, row) or where a row has one value of
// (row), inlined but for what is kept.
class RowKernel {
 public:
  RowKernel(DeviceClass device_class, const FusedPointwise& fused, const Rows& rows)
      : fused_(fused),
        rows_(rows),
        view_(device_class, {rows.count, rows.length}, 1),
        nest_(layout(), device_class == DeviceClass::kGpu) {
    nest_.length = static_cast<int>(rows.length);
    nest_.has_whole_steps = !nest_.is_gpu && rows.length % kRowStep == 0;
  }

  JitKernel build() {
    for (size_t i = 0; i < fused_.inputs.size(); ++i) {
      inputs_.push_back(add_fixed_input(kernel_, fused_.inputs[i].dtype,
                                        {rows_.length, rows_.count}, rows_.strides[i]));
    }
    for (const FusedStep& step : fused_.steps) add_step(step);
    add_output();
    schedule();
    return kernel_;
  }

 private:
  struct Step {
    bool is_long;  // a value for each element of a row, not one for all
    Func func;
  };

  // Several rows at once pay where totals wait for totals. With one fold a row mostly waits for
  // memory, which then is asked for in bursts.
  std::string layout() const {
    int folds = 0;
    for (const FusedStep& step : fused_.steps) {
      folds += is_softmax(step.op) ? 2 : is_row_reduction(step.op) ? 1 : 0;
    }
    return folds > 1 && view_.is_short() ? "short_rows" : "rows";
  }

  bool is_long(const FusedStep::Ref& ref) const {
    return ref.is_input ? rows_.strides[ref.index][0] != 0 : steps_[ref.index].is_long;
  }

  // At nest.r and nest.row.
  Expr value(const FusedStep::Ref& ref) {
    if (ref.is_input) {
      const Expr along = is_long(ref) ? Expr(nest_.r) : Expr(0);
      return loaded(inputs_[ref.index](along, nest_.row), fused_.inputs[ref.index].dtype);
    }
    const Step& step = steps_[ref.index];
    return step.is_long ? step.func(nest_.r, nest_.row) : step.func(nest_.row);
  }

  void add_step(const FusedStep& step) {
    const std::string name = "step" + std::to_string(steps_.size());
    Func func(name);
    if (const RowReduction* reduction = find_reduction(step.op)) {
      folds_.emplace_back(nest_, name + "_fold",
                          std::vector<Term>{{reduction->kind, value(step.args[0])}});
      const Expr total = folds_.back()[0], count = static_cast<float>(rows_.length);
      func(nest_.row) = rounded(reduction->is_mean ? Halide::strict_float(total / count) : total,
                                step.type.dtype);
      steps_.push_back({false, func});
      return;
    }
    if (is_softmax(step.op)) {
      softmaxes_.emplace_back(nest_, name, value(step.args[0]), step.op == "log_softmax",
                              [](const Expr& value) { return value; });
      func(nest_.r, nest_.row) = rounded(softmaxes_.back().result(), step.type.dtype);
      steps_.push_back({true, func});
      return;
    }
    std::vector<Expr> args;
    for (const FusedStep::Ref& ref : step.args) args.push_back(value(ref));
    const Expr result = rounded(apply_pointwise(step.op, step.type.dtype, args), step.type.dtype);
    const bool is_any_long = std::any_of(step.args.begin(), step.args.end(),
                                         [&](const FusedStep::Ref& ref) { return is_long(ref); });
    if (is_any_long) func(nest_.r, nest_.row) = result;
    if (!is_any_long) func(nest_.row) = result;
    steps_.push_back({is_any_long, func});
  }

  void add_output() {
    const Step& last = steps_.back();
    const DType dtype = fused_.steps.back().type.dtype;
    Expr result = value({false, static_cast<uint32_t>(steps_.size() - 1)});
    kernel_.func = Func("out");
    if (!last.is_long) {
      kernel_.func(nest_.row) = stored(result, dtype);
      fix_extents(kernel_.func.output_buffer(), {rows_.count});
      return;
    }
    for (size_t i = 0; i < inputs_.size() && is_float(dtype); ++i) {
      if (rows_.strides[i][0] == 0 || rows_.strides[i][1] == 0) continue;
      result = with_next_row(nest_, result, inputs_[i](nest_.r, nest_.row),
                             static_cast<int>(rows_.count));
    }
    kernel_.func(nest_.r, nest_.row) = stored(result, dtype);
    fix_extents(kernel_.func.output_buffer(), {rows_.length, rows_.count});
    fix_strides(kernel_.func.output_buffer(), {1, rows_.length});
  }

  void schedule() {
    AxisSchedule schedule(nest_, kernel_.func, view_.rows_per_group());
    for (Fold& fold : folds_) schedule.keep(fold);
    const int longest = static_cast<int>(rows_.length);
    for (SoftmaxLine& line : softmaxes_) line.keep(schedule, nest_.is_gpu ? 0 : longest);
    const std::vector<bool> is_kept = kept_rows();
    for (size_t i = 0; i + 1 < steps_.size(); ++i) {
      if (is_kept[i]) schedule.keep_row(steps_[i].func, longest);
      if (!steps_[i].is_long) schedule.keep(steps_[i].func);
    }
  }

  // The steps with a value for each element that more than one pass over the row needs: a CPU keeps
  // these on the stack. A pass is a fold, the output, or what fills such a step; a softmax passes
  // twice over its argument before its result is taken, a log-softmax then too.
  std::vector<bool> kept_rows() const {
    const size_t count = steps_.size();
    std::vector<std::set<size_t>> passes(count);
    std::vector<bool> is_kept(count);
    size_t kept = 0;
    for (size_t i = count; i-- > 0;) {
      const FusedStep& step = fused_.steps[i];
      const bool is_fold = find_reduction(step.op) != nullptr;
      if (i + 1 == count || is_fold) passes[i] = {i};
      const bool can_keep = steps_[i].is_long && !nest_.is_gpu && step.type.dtype != DType::kBool;
      if (can_keep && passes[i].size() > 1 && kept < kMostKeptRows) {
        is_kept[i] = true;
        ++kept;
        passes[i] = {i};
      }
      if (step.op == "softmax") passes[i].clear();
      if (is_softmax(step.op)) passes[i].insert({i + count, i + 2 * count});
      for (const FusedStep::Ref& ref : step.args) {
        if (!ref.is_input) passes[ref.index].insert(passes[i].begin(), passes[i].end());
      }
    }
    return is_kept;
  }

  static constexpr size_t kMostKeptRows = 6;  // of 16 KiB at most

  const FusedPointwise& fused_;
  const Rows& rows_;
  const AxisView view_;
  AxisNest nest_;
  JitKernel kernel_;
  std::vector<Halide::ImageParam> inputs_;
  std::vector<Step> steps_;
  std::vector<Fold> folds_;
  std::vector<SoftmaxLine> softmaxes_;
};

Plan make_plan(DeviceClass device_class, const FusedPointwise& fused, const Rows& rows) {
  const AxisView view(device_class, {rows.count, rows.length}, 1);
  std::vector<HostArg> args;
  for (uint32_t slot = 0; slot < fused.inputs.size(); ++slot) {
    args.emplace_back(
        Operand{slot, fused.inputs[slot].dtype, {rows.length, rows.count}, rows.strides[slot], {}});
  }
  const auto slot = static_cast<uint32_t>(fused.inputs.size());
  const TensorType& type = fused.steps.back().type;
  const bool is_long = !type.shape.empty() && type.shape.back() == rows.length;
  args.emplace_back(is_long ? view.tensor(slot, type.dtype) : view.per_line(slot, type.dtype));
  const SourceRules rules = is_long && type.dtype == DType::kF32 ? view.rules() : kNoAliases;
  return plan_jit([&] { return RowKernel(device_class, fused, rows).build(); }, rules,
                  label_of(fused), args);
}

}  // namespace

bool is_row_reduction(const std::string& op) { return find_reduction(op) != nullptr; }

bool is_row_op(const std::string& op) { return is_row_reduction(op) || is_softmax(op); }

bool are_fusable_rows(const Shape& shape) {
  return !shape.empty() && shape.back() >= kLanes && shape.back() <= kLongestCachedRow;
}

bool is_fusable_row_input(const Shape& input, const Shape& shape) {
  return row_stride(input, shape).has_value();
}

Plan plan_fused_rows(DeviceClass device_class, const FusedPointwise& fused) {
  check_steps(fused, is_row_step);
  if (!gives_last_step(fused)) {
    fail(Code::kInvalidArgument, "[fused_rows] the output is not the last step");
  }
  const Rows rows(fused);
  if (rows.count == 0) return {};
  const std::string key = device_class == DeviceClass::kCpu ? "cpu rows" : "gpu rows";
  return cached_jit_plan(key + typed_text_of(fused),
                         [&] { return make_plan(device_class, fused, rows); });
}

}  // namespace ballast::kernels
