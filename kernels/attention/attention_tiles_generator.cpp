// Attention on CPUs: one work-item takes tiles of `rows` query rows and walks over the keys in
// blocks, keeping scores and probabilities of one block on its stack (FlashAttention's online
// softmax: Dao et al. 2022, Milakov and Gimelshein 2018).
#include "kernels/attention/attention_recipe.h"
#include "kernels/pointwise/pointwise_math.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

using namespace attention;

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
    const int R = rows, B = block;
    const Expr row_count = q.dim(1).extent(), depth = min(q.dim(0).extent(), kMaxVectors * kLanes);
    const Expr vector_count = min(values.dim(1).extent(), kMaxVectors);
    const auto row = [&](const Expr& r_) { return min(t * R + r_, row_count - 1); };
    const Expr tile_limit = min(key_count, t * R + R + diagonal);
    const Expr row_limit = min(key_count, t * R + r + 1 + diagonal);

    qs(r, d, t, h) = q(d, row(r), h) * scale;
    RDom k(0, depth, "k");
    const Expr panel = min(b * (B / kLanes / kPanel) + j / kPanel, keys.dim(3).extent() - 1);
    dot(l, j, r, b, t, h) = 0.0f;
    dot(l, j, r, b, t, h) =
        fused_multiply_add(qs(r, k, t, h), keys(l, j % kPanel, k, panel, h), dot(l, j, r, b, t, h));
    Expr masked = dot(l, j, r, b, t, h);
    const Expr key = b * B + j * kLanes + l;
    if (mask_ != nullptr) {
      const Expr heads = mask_->dim(2).extent();
      masked += (*mask_)(key, row(r), h % heads, h / heads);
    }
    const auto at = [&](const Expr& e) { return substitute(j.name(), js.y * kPanel + js.x, e); };
    js = RDom(0, kPanel, 0, B / kLanes / kPanel, "js");
    js.where(b * B + js.y * (kLanes * kPanel) < tile_limit);
    s(l, j, r, b, t, h) = undef<float>();
    s(l, js.y * kPanel + js.x, r, b, t, h) =
        at(select(lt(cast<float>(key), cast<float>(row_limit)), masked, -kInfinity));

    RDom jv(0, B / kLanes, "jv");
    jv.where(b * B + jv * kLanes < tile_limit);
    top_lanes(l, r, b, t, h) = -kInfinity;
    top_lanes(l, r, b, t, h) = larger(top_lanes(l, r, b, t, h), s(l, jv, r, b, t, h));
    top(r, b, t, h) = reduce_lanes([&](int lane) { return top_lanes(lane, r, b, t, h); }, larger);
    p(l, j, r, b, t, h) = undef<float>();
    p(l, jv, r, b, t, h) = exp_of_scores(s(l, jv, r, b, t, h) - finite_or_zero(top(r, b, t, h)));
    sum_lanes(l, r, b, t, h) = 0.0f;
    sum_lanes(l, r, b, t, h) += p(l, jv, r, b, t, h);

    RDom kk(0, B, "kk");
    kk.where(b * B + kk < tile_limit);
    pv(l, v, r, b, t, h) = 0.0f;
    pv(l, v, r, b, t, h) =
        fused_multiply_add(p(kk % kLanes, kk / kLanes, r, b, t, h),
                           values(l, min(v, vector_count - 1), min(b * B + kk, key_count - 1), h),
                           pv(l, v, r, b, t, h));
    staged(l, v, r, b, t, h) = pv(l, v, r, b, t, h);

    rb = RDom(0, (key_count + B - 1) / B, "rb");
    rb.where(rb * B < tile_limit);
    state(l, v, r, t, h) = Tuple(0.0f, 0.0f, -kInfinity);
    const Tuple old = state(l, v, r, t, h);
    const Expr m_old = old[2], m_block = top(r, rb, t, h);
    const Expr is_up = lt(m_old, m_block);
    const Expr low = select(is_up, m_old, m_block), high = select(is_up, m_block, m_old);
    const Expr e = exp_of_scores(low - finite_or_zero(high));
    const Expr alpha = select(is_up, e, 1.0f), beta = select(is_up, 1.0f, e);
    state(l, v, r, t, h) = Tuple(old[0] * alpha + staged(l, v, r, rb, t, h) * beta,
                                 old[1] * alpha + sum_lanes(l, r, rb, t, h) * beta, high);

    const Expr sum = reduce_lanes([&](int lane) { return Expr(state(lane, 0, r, t, h)[1]); },
                                  [](const Expr& x, const Expr& y) { return x + y; });
    total(r, t, h) =
        Tuple(select(eq(sum, 0.0f), 0.0f, 1.0f / sum), state(0, 0, r, t, h)[2] + log_f32(sum));
    const Tuple row_total = total(y % R, y / R, h);
    Func out = *out_;
    out(l, v, y, h) = Tuple(Expr(state(l, v, y % R, y / R, h)[0]) * row_total[0], row_total[1]);

    q.dim(0).set_min(0);
    q.dim(1).set_min(0);
    q.dim(2).set_min(0);
    layout(keys);
    layout(values);
    if (mask_ != nullptr) {
      for (int i = 0; i < 4; ++i) mask_->dim(i).set_min(0);
    }
    std::vector<OutputImageParam> buffers = out.output_buffers();
    layout(buffers[0]);
    buffers[1].dim(0).set_stride(1);

    // Schedule.
    for (Func f : {qs, total, state}) f.bound_extent(t, 1).bound_extent(h, 1);
    for (Func f : {dot, s, top_lanes, top, p, sum_lanes, pv, staged}) {
      f.bound_extent(t, 1).bound_extent(h, 1).bound_extent(b, 1);
    }
    out.split(y, yo, yi, R, TailStrategy::GuardWithIf)
        .split(yo, group, tile, tiles_per_group, TailStrategy::GuardWithIf)
        .reorder(l, v, yi, tile, group, h)
        .gpu_blocks(group, h)
        .vectorize(l)
        .never_partition_all();
    total.compute_at(out, tile).store_in(MemoryType::Stack).bound_extent(r, R);
    state.compute_at(out, tile).store_in(MemoryType::Stack);
    state.bound_extent(r, R).bound_storage(v, kMaxVectors).vectorize(l);
    state.update()
        .split(v, vo, vi, kPanel, TailStrategy::RoundUp)
        .reorder(l, vi, r, vo, rb)
        .vectorize(l)
        .unroll(vi)
        .never_partition_all();
    state.never_partition_all();
    qs.compute_at(out, tile).store_in(MemoryType::Stack);
    qs.bound_extent(r, R).bound_storage(d, kMaxVectors * kLanes).reorder_storage(d, r, t, h);
    staged.compute_at(state, vo).store_in(MemoryType::Stack);
    pv.compute_at(staged, Var::outermost()).store_in(MemoryType::Register);
    for (Func f : {staged, pv}) {
      f.bound_extent(r, R).bound_extent(v, kPanel).vectorize(l).unroll(v).unroll(r);
    }
    pv.update().reorder(l, v, r, kk).vectorize(l).unroll(v).unroll(r);
    for (Func f : {s, p}) {
      f.compute_at(state, rb).store_in(MemoryType::Stack);
      f.bound_extent(r, R).bound_storage(j, B / kLanes);
    }
    s.update().reorder(l, js.x, r, js.y).vectorize(l).unroll(js.x).unroll(r);
    dot.compute_at(s, js.y).store_in(MemoryType::Register);
    dot.bound_extent(r, R).bound_extent(j, kPanel).vectorize(l).unroll(j).unroll(r);
    dot.update().reorder(l, j, r, k).vectorize(l).unroll(j).unroll(r);
    p.update().reorder(l, jv, r).vectorize(l);
    for (Func f : {top_lanes, sum_lanes}) {
      f.compute_at(state, rb).store_in(MemoryType::Stack);
      f.bound_extent(r, R).vectorize(l);
      f.update().reorder(l, jv, r).vectorize(l);
    }
    top.compute_at(state, rb).store_in(MemoryType::Stack).bound_extent(r, R);
  }

 private:
  Var l{"l"}, v{"v"}, y{"y"}, h{"h"}, r{"r"}, t{"t"}, d{"d"}, b{"b"}, j{"j"}, vo{"vo"}, vi{"vi"},
      jo{"jo"}, ji{"ji"}, yo{"yo"}, yi{"yi"}, group{"group"}, tile{"tile"};
  RDom rb, js;
  Func qs{"qs"}, dot{"dot"}, s{"s"}, top_lanes{"top_lanes"}, top{"top"}, p{"p"},
      sum_lanes{"sum_lanes"}, pv{"pv"}, staged{"staged"}, state{"state"}, total{"total"};
  GeneratorInput<Buffer<float>>* mask_ = nullptr;
  GeneratorOutput<Buffer<>>* out_ = nullptr;

  template <class Tensor>
  void layout(Tensor& tensor) {
    for (int i = 1; i < tensor.dimensions(); ++i) tensor.dim(i).set_min(0);
    tensor.dim(0).set_bounds(0, kLanes).set_stride(1);
    tensor.dim(1).set_stride(kLanes);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionTiles, attention_tiles)
