// The gradients of attention on CPUs (Dao 2023, FlashAttention-2, algorithm 2), tiled like the
// forward pass. With s = scale q k' + mask, p = exp(s - lse), ds = scale p (dout v' - delta):
//
//   plain       rows are queries, lanes keys:  dq = ds k
//   transposed  rows are keys, lanes queries:  dk = ds' q and dv = p' dout
//
// Each kernel computes p anew: nothing is added to from two sides, and no scores are stored.
#include "kernels/attention/attention_recipe.h"
#include "kernels/pointwise/pointwise_math.h"

namespace ballast::kernels {
namespace {

using namespace attention;
using namespace Halide;

class AttentionGradTiles : public Generator<AttentionGradTiles> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> transposed{"transposed", false};
  GeneratorParam<bool> has_mask{"has_mask", false};
  GeneratorParam<int> rows{"rows", 12};
  GeneratorParam<int> block{"block", 256};

  using BufferInput = GeneratorInput<Buffer<float>>;
  Input<Buffer<float, 3>> a{"a"};          // q, transposed k: [bh][row][d]
  Input<Buffer<float, 5>> b{"b"};          // k, transposed q: [bh][panel][d][vector][lane]
  Input<Buffer<float, 3>> da{"da"};        // dout, transposed v: [bh][row][dv]
  Input<Buffer<float, 5>> db{"db"};        // v, transposed dout, like b
  Input<Buffer<float, 3>> stats{"stats"};  // [bh][lse, delta][query], see attention_stats
  Input<Buffer<float, 4>> x{"x"};          // k, transposed q: [bh][column][vector][lane]
  Input<int> column_count{"column_count"};
  Input<int> diagonal{"diagonal"};
  Input<float> scale{"scale"};
  Input<int> tiles_per_group{"tiles_per_group"};

  void configure() {
    if (transposed) dx_ = add_input<Buffer<float>>("dx", 4);  // dout, like x
    if (has_mask) mask_ = add_input<Buffer<float>>("mask", 4);
    out_ = add_output<Buffer<>>("out", std::vector<Type>(transposed ? 2 : 1, Float(32)), 4);
  }

  void generate() {
    define_strips();
    define_sums();
    set_layouts();
    schedule_loops();
  }

 private:
  Var l{"l"}, v{"v"}, y{"y"}, h{"h"}, r{"r"}, t{"t"}, d{"d"}, n{"n"}, j{"j"}, vo{"vo"}, vi{"vi"},
      yo{"yo"}, yi{"yi"}, group{"group"}, tile{"tile"};
  RDom rb, js, kk;
  Func as{"as"}, das{"das"}, s{"s"}, scores{"scores"}, dp{"dp"}, p{"p"}, ds{"ds"}, state{"state"};
  std::vector<Func> products, staged;
  BufferInput *dx_ = nullptr, *mask_ = nullptr;
  GeneratorOutput<Buffer<>>* out_ = nullptr;

  Expr row() { return min(t * rows + r, a.dim(1).extent() - 1); }

  // Columns [first, last) of a tile of rows; the rest is hidden by the causal mask.
  Expr first_column() { return transposed ? t * rows - diagonal : Expr(0); }
  Expr last_column() {
    return transposed ? Expr(column_count) : min(column_count, t * rows + rows + diagonal);
  }
  void restrict_to_tile(RDom& domain, const Expr& begin, int size) {
    if (transposed) domain.where(begin + size > first_column());
    domain.where(begin < last_column());
  }

  Expr is_visible(const Expr& column) {
    const auto real = [](const Expr& e) { return cast<float>(e); };
    const Expr row_number = t * rows + r;
    if (!transposed) {
      return lt(real(column), real(min(column_count, row_number + 1 + diagonal)));
    }
    // Two conditions on the column as one on how far it lies from the middle of its range.
    return lt(real(select(column < row_number - diagonal, column_count, column)),
              real(column_count));
  }

  // Strips of p and ds: tiles of rows x 2 vectors over a block of columns.
  void define_strips() {
    const int B = block;
    const Expr depth = min(a.dim(0).extent(), kMaxVectors * kLanes);
    const Expr value_depth = min(da.dim(0).extent(), kMaxVectors * kLanes);
    const Expr panel = min(n * (B / kLanes / kPanel) + j / kPanel, b.dim(3).extent() - 1);
    as(r, d, t, h) = a(d, row(), h) * scale;
    das(r, d, t, h) = da(d, row(), h);
    RDom k(0, depth, "k"), e(0, value_depth, "e");
    s(l, j, r, n, t, h) = 0.0f;
    s(l, j, r, n, t, h) =
        fused_multiply_add(as(r, k, t, h), b(l, j % kPanel, k, panel, h), s(l, j, r, n, t, h));
    dp(l, j, r, n, t, h) = 0.0f;
    dp(l, j, r, n, t, h) =
        fused_multiply_add(das(r, e, t, h), db(l, j % kPanel, e, panel, h), dp(l, j, r, n, t, h));

    js = RDom(0, kPanel, 0, B / kLanes / kPanel, "js");
    restrict_to_tile(js, n * B + js.y * (kLanes * kPanel), kLanes * kPanel);
    const Expr jj = js.y * kPanel + js.x, column = n * B + jj * kLanes + l;
    const Expr at = transposed ? column : row();
    scores(l, j, r, n, t, h) = s(l, j, r, n, t, h);
    Expr score = scores(l, jj, r, n, t, h);
    if (mask_ != nullptr) {
      const Expr heads = mask_->dim(2).extent();
      const Expr last = column_count - 1;
      score += transposed ? (*mask_)(row(), min(column, last), h % heads, h / heads)
                          : (*mask_)(column, row(), h % heads, h / heads);
    }
    p(l, j, r, n, t, h) = undef<float>();
    p(l, jj, r, n, t, h) =
        exp_of_scores(select(is_visible(column), score, -kInfinity) - stats(at, 0, h));
    ds(l, j, r, n, t, h) = undef<float>();
    ds(l, jj, r, n, t, h) =
        p(l, jj, r, n, t, h) * (dp(l, jj, r, n, t, h) - stats(at, 1, h)) * scale;
  }

  // state += strip x, block by block.
  void define_sums() {
    const int B = block;
    kk = RDom(0, B, "kk");
    restrict_to_tile(kk, n * B + kk, 1);
    std::vector<Expr> zeros, sums;
    rb = RDom(0, (column_count + B - 1) / B, "rb");
    restrict_to_tile(rb, rb * B, B);
    const auto add = [&](Func strip, auto& source) {
      Func product("product"), stage("staged");
      product(l, v, r, n, t, h) = 0.0f;
      product(l, v, r, n, t, h) =
          fused_multiply_add(strip(kk % kLanes, kk / kLanes, r, n, t, h),
                             source(l, min(v, min(source.dim(1).extent(), kMaxVectors) - 1),
                                    min(n * B + kk, column_count - 1), h),
                             product(l, v, r, n, t, h));
      stage(l, v, r, n, t, h) = product(l, v, r, n, t, h);
      products.push_back(product);
      staged.push_back(stage);
    };
    add(ds, x);
    if (transposed) add(p, *dx_);
    for (size_t i = 0; i < staged.size(); ++i) zeros.push_back(0.0f);
    state(l, v, r, t, h) = Tuple(zeros);
    for (size_t i = 0; i < staged.size(); ++i) {
      const FuncRef old = state(l, v, r, t, h);
      sums.push_back((staged.size() == 1 ? Expr(old) : old[i]) + staged[i](l, v, r, rb, t, h));
    }
    state(l, v, r, t, h) = Tuple(sums);
    Func out = *out_;
    std::vector<Expr> results;
    for (size_t i = 0; i < staged.size(); ++i) {
      const FuncRef last = state(l, v, y % rows, y / rows, h);
      results.push_back(staged.size() == 1 ? Expr(last) : last[i]);
    }
    out(l, v, y, h) = Tuple(results);
  }

  void set_layouts() {
    for (int i = 0; i < 3; ++i) {
      a.dim(i).set_min(0);
      da.dim(i).set_min(0);
      stats.dim(i).set_min(0);
    }
    set_vectors(b);
    set_vectors(db);
    set_vectors(x);
    if (dx_ != nullptr) set_vectors(*dx_);
    if (mask_ != nullptr) {
      for (int i = 0; i < 4; ++i) mask_->dim(i).set_min(0);
      if (transposed) mask_->dim(0).set_stride(Expr());
    }
    Func out = *out_;
    std::vector<OutputImageParam> buffers = out.output_buffers();
    set_vectors(buffers[0]);
    for (size_t i = 1; i < buffers.size(); ++i) {
      buffers[i].dim(0).set_stride(1);
      buffers[i].dim(1).set_stride(kLanes);
    }
  }

  template <class Tensor>
  static void set_vectors(Tensor& tensor) {
    for (int i = 1; i < tensor.dimensions(); ++i) tensor.dim(i).set_min(0);
    tensor.dim(0).set_bounds(0, kLanes).set_stride(1);
    tensor.dim(1).set_stride(kLanes);
  }

  // Measured like the forward pass: 7 products, of which dq's three and dk's and dv's four reach 76
  // % of the FMA peak at 1 x 8 x 1024 x 64, 60 % at 2 x 8 x 196 x 32.
  void schedule_loops() {
    const int R = rows;
    Func out = *out_;
    out.split(y, yo, yi, R, TailStrategy::GuardWithIf)
        .split(yo, group, tile, tiles_per_group, TailStrategy::GuardWithIf)
        .reorder(l, v, yi, tile, group, h)
        .gpu_blocks(group, h)
        .vectorize(l)
        .never_partition_all();
    for (Func f : {as, das}) {
      f.compute_at(out, tile).store_in(MemoryType::Stack);
      f.bound_extent(r, R).bound_extent(t, 1).bound_extent(h, 1);
      f.reorder(d, r, t, h).reorder_storage(d, r, t, h);
    }
    state.compute_at(out, tile).store_in(MemoryType::Stack);
    state.bound_extent(r, R).bound_extent(t, 1).bound_extent(h, 1).vectorize(l);
    state.bound_storage(v, kMaxVectors);
    state.never_partition_all();
    state.update()
        .split(v, vo, vi, kPanel, TailStrategy::RoundUp)
        .reorder(l, vi, r, vo, rb)
        .vectorize(l)
        .unroll(vi)
        .never_partition_all();
    std::vector<Func> blocks = {s, scores, dp, p, ds};
    blocks.insert(blocks.end(), products.begin(), products.end());
    blocks.insert(blocks.end(), staged.begin(), staged.end());
    for (Func f : blocks) {
      f.bound_extent(r, R).bound_extent(n, 1).bound_extent(t, 1).bound_extent(h, 1);
    }
    for (Func f : {p, ds}) {
      f.compute_at(state, rb).store_in(MemoryType::Stack);
      f.update().reorder(l, js.x, r, js.y).vectorize(l).unroll(js.x).never_partition_all();
    }
    ds.update().unroll(r);
    scores.compute_at(p, js.y).store_in(MemoryType::Stack);
    s.compute_at(scores, Var::outermost());
    dp.compute_at(ds, js.y);
    for (Func f : {s, scores, dp}) f.bound_extent(j, kPanel).vectorize(l).unroll(j).unroll(r);
    for (size_t i = 0; i < staged.size(); ++i) {
      staged[i].compute_at(state, vo).store_in(MemoryType::Stack);
      staged[i].bound_extent(v, kPanel).vectorize(l).unroll(v).unroll(r);
      products[i].compute_at(staged[i], Var::outermost());
      products[i].bound_extent(v, kPanel).vectorize(l).unroll(v).unroll(r);
      products[i].update().reorder(l, v, r, kk).vectorize(l).unroll(v).unroll(r);
      products[i].store_in(MemoryType::Register);
    }
    s.store_in(MemoryType::Register);
    dp.store_in(MemoryType::Register);
    s.update().reorder(l, j, r, RVar("k$x")).vectorize(l).unroll(j).unroll(r);
    dp.update().reorder(l, j, r, RVar("e$x")).vectorize(l).unroll(j).unroll(r);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionGradTiles, attention_grad_tiles)
