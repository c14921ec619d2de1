// Attention on CPUs: one work-item takes tiles of `rows` query rows and walks over the keys in
// blocks, keeping scores and probabilities of one block on its stack (FlashAttention's online
// softmax: Dao et al. 2022, Milakov and Gimelshein 2018).
#include "kernels/attention/attention_recipe.h"
#include "kernels/pointwise/pointwise_math.h"

namespace ballast::kernels {
namespace {

using namespace attention;
using namespace Halide;

class AttentionTiles : public Generator<AttentionTiles> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> has_mask{"has_mask", false};
  GeneratorParam<int> rows{"rows", 12};
  GeneratorParam<int> block{"block", 256};

  Input<Buffer<float, 3>> q{"q"};            // [bh][row][d]
  Input<Buffer<float, 5>> keys{"keys"};      // [bh][panel][d][vector][lane]
  Input<Buffer<float, 4>> values{"values"};  // [bh][key][vector][lane]
  Input<int> key_count{"key_count"};
  Input<int> diagonal{"diagonal"};
  Input<float> scale{"scale"};
  Input<int> tiles_per_group{"tiles_per_group"};

  void configure() {
    if (has_mask) mask_ = add_input<Buffer<float>>("mask", 4);
    out_ = add_output<Buffer<>>("out", std::vector<Type>{Float(32), Float(32)}, 4);
  }

  void generate() {
    define_scores();
    define_probabilities();
    define_state();
    define_results();
    set_layouts();
    schedule_tiles();
    schedule_blocks();
  }

 private:
  // b counts blocks of keys, j vectors in a block, t tiles of rows, r rows in a tile.
  Var l{"l"}, v{"v"}, y{"y"}, h{"h"}, r{"r"}, t{"t"}, d{"d"}, b{"b"}, j{"j"}, vo{"vo"}, vi{"vi"},
      yo{"yo"}, yi{"yi"}, group{"group"}, tile{"tile"};
  RDom k, js, jv, kk, rb;
  Func qs{"qs"}, dot{"dot"}, s{"s"}, top_lanes{"top_lanes"}, top{"top"}, p{"p"},
      sum_lanes{"sum_lanes"}, pv{"pv"}, staged{"staged"}, state{"state"}, total{"total"};
  GeneratorInput<Buffer<float>>* mask_ = nullptr;
  GeneratorOutput<Buffer<>>* out_ = nullptr;

  // Rows past the last repeat it; they are not stored.
  Expr row() { return min(t * rows + r, q.dim(1).extent() - 1); }

  // Keys from here on are hidden from all rows of a tile.
  Expr tile_limit() { return min(key_count, t * rows + rows + diagonal); }

  // A strip of scores of one block. Loops that end at tile_limit cost what they compute: Halide
  // trims them where the condition of the RDom fails.
  void define_scores() {
    qs(r, d, t, h) = q(d, row(), h) * scale;
    k = RDom(0, min(q.dim(0).extent(), kMaxVectors * kLanes), "k");
    const Expr panel = min(b * (block / kLanes / kPanel) + j / kPanel, keys.dim(3).extent() - 1);
    dot(l, j, r, b, t, h) = 0.0f;
    dot(l, j, r, b, t, h) =
        fused_multiply_add(qs(r, k, t, h), keys(l, j % kPanel, k, panel, h), dot(l, j, r, b, t, h));

    js = RDom(0, kPanel, 0, block / kLanes / kPanel, "js");
    js.where(b * block + js.y * (kLanes * kPanel) < tile_limit());
    const Expr jj = js.y * kPanel + js.x, key = b * block + jj * kLanes + l;
    Expr score = dot(l, jj, r, b, t, h);
    if (mask_ != nullptr) {
      const Expr heads = mask_->dim(2).extent();
      score += (*mask_)(key, row(), h % heads, h / heads);
    }
    // As floats, opaque to Halide: otherwise it would put the condition into the loops of dot.
    const Expr limit = min(key_count, t * rows + r + 1 + diagonal);
    s(l, j, r, b, t, h) = undef<float>();
    s(l, jj, r, b, t, h) = select(lt(cast<float>(key), cast<float>(limit)), score, -kInfinity);
  }

  // p = exp(s - the block's largest), its sum by lanes, and p v of the block.
  void define_probabilities() {
    jv = RDom(0, block / kLanes, "jv");
    jv.where(b * block + jv * kLanes < tile_limit());
    top_lanes(l, r, b, t, h) = -kInfinity;
    top_lanes(l, r, b, t, h) = larger(top_lanes(l, r, b, t, h), s(l, jv, r, b, t, h));
    top(r, b, t, h) = reduce_lanes([&](int lane) { return top_lanes(lane, r, b, t, h); }, larger);
    p(l, j, r, b, t, h) = undef<float>();
    p(l, jv, r, b, t, h) = exp_of_scores(s(l, jv, r, b, t, h) - finite_or_zero(top(r, b, t, h)));
    sum_lanes(l, r, b, t, h) = 0.0f;
    sum_lanes(l, r, b, t, h) += p(l, jv, r, b, t, h);

    kk = RDom(0, block, "kk");
    kk.where(b * block + kk < tile_limit());
    const Expr vector = min(v, min(values.dim(1).extent(), kMaxVectors) - 1);
    const Expr key = min(b * block + kk, key_count - 1);
    pv(l, v, r, b, t, h) = 0.0f;
    pv(l, v, r, b, t, h) = fused_multiply_add(p(kk % kLanes, kk / kLanes, r, b, t, h),
                                              values(l, vector, key, h), pv(l, v, r, b, t, h));
    staged(l, v, r, b, t, h) = pv(l, v, r, b, t, h);
  }

  // p v, the sum of p (by lanes) and the largest score over the blocks so far. An update may only
  // depend on its own element, so each keeps its copy of the latter two: one exponential per vector
  // of the result and block of keys.
  void define_state() {
    rb = RDom(0, (key_count + block - 1) / block, "rb");
    rb.where(rb * block < tile_limit());
    state(l, v, r, t, h) = Tuple(0.0f, 0.0f, -kInfinity);
    const Tuple old = state(l, v, r, t, h);
    const Expr block_top = top(r, rb, t, h), is_up = lt(old[2], block_top);
    const Expr low = select(is_up, old[2], block_top), high = select(is_up, block_top, old[2]);
    const Expr e = exp_of_scores(low - finite_or_zero(high));
    const Expr alpha = select(is_up, e, 1.0f), beta = select(is_up, 1.0f, e);
    state(l, v, r, t, h) = Tuple(old[0] * alpha + staged(l, v, r, rb, t, h) * beta,
                                 old[1] * alpha + sum_lanes(l, r, rb, t, h) * beta, high);
  }

  void define_results() {
    const Expr sum = reduce_lanes([&](int lane) { return Expr(state(lane, 0, r, t, h)[1]); },
                                  [](const Expr& a, const Expr& c) { return a + c; });
    total(r, t, h) =
        Tuple(select(eq(sum, 0.0f), 0.0f, 1.0f / sum), state(0, 0, r, t, h)[2] + log_f32(sum));
    const Tuple row_total = total(y % rows, y / rows, h);
    Func out = *out_;
    out(l, v, y, h) =
        Tuple(Expr(state(l, v, y % rows, y / rows, h)[0]) * row_total[0], row_total[1]);
  }

  void set_layouts() {
    for (int i = 0; i < 3; ++i) q.dim(i).set_min(0);
    set_vectors(keys);
    set_vectors(values);
    if (mask_ != nullptr) {
      for (int i = 0; i < 4; ++i) mask_->dim(i).set_min(0);
    }
    Func out = *out_;
    std::vector<OutputImageParam> buffers = out.output_buffers();
    set_vectors(buffers[0]);
    buffers[1].dim(0).set_stride(1);
  }

  void schedule_tiles() {
    Func out = *out_;
    out.split(y, yo, yi, rows, TailStrategy::GuardWithIf)
        .split(yo, group, tile, tiles_per_group, TailStrategy::GuardWithIf)
        .reorder(l, v, yi, tile, group, h)
        .gpu_blocks(group, h)
        .vectorize(l)
        .never_partition_all();
    for (Func f : {qs, state, total}) {
      f.compute_at(out, tile).store_in(MemoryType::Stack);
      f.bound_extent(r, rows).bound_extent(t, 1).bound_extent(h, 1);
    }
    // Rows of q, not columns: gathering those took as long as a quarter of the products.
    qs.reorder(d, r, t, h).reorder_storage(d, r, t, h).bound_storage(d, kMaxVectors * kLanes);
    state.bound_storage(v, kMaxVectors).vectorize(l).never_partition_all();
    state.update()
        .split(v, vo, vi, kPanel, TailStrategy::RoundUp)
        .reorder(l, vi, r, vo, rb)
        .vectorize(l)
        .unroll(vi)
        .never_partition_all();
  }

  // Measured by processor time on 2 cores (Zen 5, PoCL 3.1, Nov 2026), which other programs
  // disturb least: the two products run at 93 to 95 % of the FMA peak; with exp and the rest
  // 1 x 8 x 1024 x 64 reaches 66 %, 2 x 8 x 196 x 32 45 %.
  void schedule_blocks() {
    for (Func f : {dot, s, top_lanes, top, p, sum_lanes, pv, staged}) {
      f.bound_extent(r, rows).bound_extent(b, 1).bound_extent(t, 1).bound_extent(h, 1);
      f.compute_at(state, rb).store_in(MemoryType::Stack);
    }
    s.bound_storage(j, block / kLanes);
    s.update().reorder(l, js.x, r, js.y).vectorize(l).unroll(js.x).unroll(r);
    dot.compute_at(s, js.y).store_in(MemoryType::Register);
    dot.bound_extent(j, kPanel).vectorize(l).unroll(j).unroll(r);
    dot.update().reorder(l, j, r, k).vectorize(l).unroll(j).unroll(r);
    p.bound_storage(j, block / kLanes);
    p.update().reorder(l, jv, r).vectorize(l);
    for (Func f : {top_lanes, sum_lanes}) {
      f.vectorize(l);
      f.update().reorder(l, jv, r).vectorize(l);
    }
    staged.compute_at(state, vo);
    pv.compute_at(staged, Var::outermost()).store_in(MemoryType::Register);
    for (Func f : {staged, pv}) f.bound_extent(v, kPanel).vectorize(l).unroll(v).unroll(r);
    pv.update().reorder(l, v, r, kk).vectorize(l).unroll(v).unroll(r);
  }

  template <class Tensor>
  static void set_vectors(Tensor& tensor) {
    for (int i = 1; i < tensor.dimensions(); ++i) tensor.dim(i).set_min(0);
    tensor.dim(0).set_bounds(0, kLanes).set_stride(1);
    tensor.dim(1).set_stride(kLanes);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionTiles, attention_tiles)
