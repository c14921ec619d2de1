// Attention on CPUs: one work-item takes tiles of queries and walks over the keys in blocks,
// keeping scores and probabilities of one block on its stack (FlashAttention's online softmax: Dao
// et al. 2022, Milakov and Gimelshein 2018).
//
// Lanes are queries. Everything softmax does to a row is then done lane by lane, elements of k and
// v are broadcast from where they lie, and only q and the result are transposed.
#include "kernels/attention/attention_recipe.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/shuffle.h"

#include <algorithm>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace attention;
using namespace Halide;

class AttentionTiles : public Generator<AttentionTiles> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> has_mask{"has_mask", false};
  GeneratorParam<int> block{"block", 128};
  GeneratorParam<bool> narrow{"narrow", false};        // see tile_of()
  GeneratorParam<bool> is_single{"is_single", false};  // a tile of one vector, after whole ones

  Input<Buffer<float, 4>> q{"q"};            // [bh][query][vector][lane]
  Input<Buffer<float, 3>> keys{"keys"};      // [bh][key][d]
  Input<Buffer<float, 4>> values{"values"};  // [bh][key][chunk][e of a chunk]
  Input<int> first{"first"};                 // query
  Input<int> diagonal{"diagonal"};
  Input<float> scale{"scale"};

  void configure() {
    if (has_mask) mask_ = add_input<Buffer<float>>("mask", 6);
    // The queries from `first` on. The dimensions in front have stride 1 and add its offset.
    out_ = add_output<Buffer<float>>("out", 5);  // [1][bh][query][vector][lane]
    lse_ = add_output<Buffer<float>>("lse", 3);  // [1][bh][query]
  }

  void generate() {
    key_count = keys.dim(1).extent();
    const Tile whole = tile_of(narrow);
    whole_tile = whole.queries();
    lanes = whole.lanes;
    vectors = is_single ? 1 : whole.vectors;
    tile = vectors * lanes;
    held = std::min(kStep, whole.sums / vectors);
    unrolled = narrow ? 1 : 4;
    define_scores();
    define_probabilities();
    define_state();
    define_results();
    set_layouts();
    schedule_tiles();
    schedule_blocks();
  }

 private:
  // l and j are the lane and vector of a query in tile t, c a key in block b, e an element of v in
  // chunk x, d one of q, db and eb vectors of these.
  Var l{"l"}, j{"j"}, r{"r"}, t{"t"}, h{"h"}, b{"b"}, c{"c"}, u{"u"}, d{"d"}, e{"e"}, x{"x"},
      db{"db"}, eb{"eb"}, o{"o"}, y{"y"}, yi{"yi"}, yv{"yv"}, row{"row"};
  Expr key_count;
  // Queries, and vectors of so many lanes, of a tile; keys or elements of a step whose sums are in
  // registers at a time; steps of a sum that have one address and constants.
  int whole_tile = 0, tile = 0, vectors = 0, lanes = 0, held = 0, unrolled = 0;
  RVar xo{"xo"}, xi{"xi"};
  RDom js, ju, rs, k, kk, kk_rest;
  Func qs{"qs"}, limits{"limits"}, dot{"dot"}, s{"s"}, tops{"tops"}, top{"top"}, p{"p"},
      sums{"sums"}, sum{"sum"}, pv{"pv"}, state{"state"}, factor{"factor"}, row_lse{"row_lse"};
  std::vector<Func> turned_q, turned_out;
  GeneratorInput<Buffer<float>>* mask_ = nullptr;
  GeneratorOutput<Buffer<float>>*out_ = nullptr, *lse_ = nullptr;

  // Rows of the state: factors of what was and of what the block adds, then what they apply to.
  enum Row { kOld, kNew, kTop, kSum, kStats, kFirst = 8 };

  // Keys from here on are hidden from all queries of a tile.
  Expr tile_limit() { return min(key_count, first + t * tile + tile + diagonal); }

  // Scores of one block. Loops that end at tile_limit cost what they compute: Halide trims them
  // where the condition of the RDom fails.
  void define_scores() {
    Func block_of_q("block_of_q");
    const Expr last = q.dim(2).extent() - 1;
    block_of_q(l, r, j, db, t, h) =
        q(l, db, min(first + t * tile + j * lanes + r, last), h) * scale;
    turned_q = transpose_block(block_of_q, lanes, sizeof(float), l, r, {j, db, t, h});
    qs(l, j, d, t, h) = turned_q.back()(l, d % lanes, j, d / lanes, t, h);
    limits(l, j, t) = cast<float>(min(key_count, first + t * tile + j * lanes + l + 1 + diagonal));

    const Expr depth = min(keys.dim(0).extent(), kMaxVectors * kLanes);
    k = RDom(0, unrolled, 0, depth / unrolled, "k");
    const Expr step = k.y * unrolled + k.x;
    dot(l, j, c, b, t, h) = 0.0f;
    dot(l, j, c, b, t, h) = fma_f32(keys(step, min(b * block + c, key_count - 1), h),
                                    qs(l, j, step, t, h), dot(l, j, c, b, t, h));
    js = RDom(0, kStep, 0, block / kStep, "js");
    js.where(b * block + js.y * kStep < tile_limit());
    const Expr cc = js.y * kStep + js.x, key = b * block + cc;
    Expr score = dot(l, j, cc, b, t, h);
    if (mask_ != nullptr) {
      const Expr heads = mask_->dim(4).extent(), at = first / whole_tile + t;
      score += (*mask_)(l, j, min(key, key_count - 1), at, h % heads, h / heads);
    }
    // As floats, opaque to Halide: otherwise it would put the condition into the loops of dot.
    s(l, j, c, b, t, h) = undef<float>();
    s(l, j, cc, b, t, h) = select(lt(cast<float>(key), limits(l, j, t)), score, -kInfinity);
  }

  // p = exp(s - the block's largest), and its sum. Largest and sum are of every eighth key first:
  // as many chains of additions as hide their latency.
  void define_probabilities() {
    ju = RDom(0, block / kStep, "ju");
    ju.where(b * block + ju * kStep < tile_limit());
    tops(l, j, u, b, t, h) = -kInfinity;
    tops(l, j, u, b, t, h) = larger(tops(l, j, u, b, t, h), s(l, j, ju * kStep + u, b, t, h));
    top(l, j, b, t, h) = combined(tops, larger);
    const Expr cc = js.y * kStep + js.x;
    p(l, j, c, b, t, h) = undef<float>();
    p(l, j, cc, b, t, h) =
        exp_of_negative(s(l, j, cc, b, t, h) - finite_or_zero(top(l, j, b, t, h)));
    sums(l, j, u, b, t, h) = 0.0f;
    sums(l, j, u, b, t, h) += p(l, j, ju * kStep + u, b, t, h);
    sum(l, j, b, t, h) = combined(sums, [](const Expr& a, const Expr& o) { return a + o; });

    kk = RDom(0, unrolled, 0, block / unrolled, "kk");
    // Not of `seen`, whose bound of a block Halide would lose.
    kk.where(b * block + kk.y * unrolled + unrolled <= tile_limit());
    std::vector<Expr> steps{kk.y * unrolled + kk.x};
    if (unrolled > 1) {
      const Expr seen = min(tile_limit() - b * block, block);
      const Expr whole = max(seen, 0) / unrolled * unrolled;
      kk_rest = RDom(0, unrolled - 1, "kk_rest");
      kk_rest.where(whole + kk_rest < seen);
      steps.push_back(whole + kk_rest);
    }
    pv(l, j, e, x, b, t, h) = 0.0f;
    for (const Expr& at : steps) {
      pv(l, j, e, x, b, t, h) =
          fma_f32(values(e, x, b * block + at, h), p(l, j, at, b, t, h), pv(l, j, e, x, b, t, h));
    }
  }

  Expr combined(Func& partial, const Combination& combine) {
    return pairwise(
        kStep, [&](int i) { return Expr(partial(l, j, i, b, t, h)); }, combine);
  }

  // Statistics and p v over the blocks so far. All are rows of one Func, as each block must update
  // all of them: first the statistics (rs.z is 0), then p v in chunks rs.y.
  void define_state() {
    const Expr chunks = min(values.dim(1).extent(), kMaxVectors * kLanes / kStep);
    rs = RDom(0, kStep, 0, chunks, 0, 2, 0, (key_count + block - 1) / block, "rs");
    rs.where(rs.w * block < tile_limit());
    rs.where(rs.z == 1 || (rs.y == 0 && rs.x < kStats));
    state(l, j, row, t, h) = select(row == kTop, -kInfinity, 0.0f);
    const auto at = [&](const Expr& i) { return Expr(state(l, j, i, t, h)); };
    const Expr block_top = top(l, j, rs.w, t, h), is_up = lt(at(kTop), block_top);
    const Expr low = select(is_up, at(kTop), block_top), high = select(is_up, block_top, at(kTop));
    const Expr ratio = exp_of_negative(low - finite_or_zero(high));
    const Expr is_stat = rs.z == 0, target = select(is_stat, rs.x, kFirst + rs.y * kStep + rs.x);
    const Expr stat =
        select(rs.x == kOld, select(is_up, ratio, 1.0f), rs.x == kNew, select(is_up, 1.0f, ratio),
               rs.x == kTop, high, at(kSum) * at(kOld) + sum(l, j, rs.w, t, h) * at(kNew));
    state(l, j, target, t, h) =
        select(is_stat, stat, at(target) * at(kOld) + pv(l, j, rs.x, rs.y, rs.w, t, h) * at(kNew));
  }

  void define_results() {
    const Expr total = state(l, j, kSum, t, h);
    factor(l, j, t, h) = select(eq(total, 0.0f), 0.0f, 1.0f / total);
    row_lse(l, j, t, h) = state(l, j, kTop, t, h) + log_f32(total);
    Func block_of_out("block_of_out");
    block_of_out(l, r, yv, eb, h) =
        state(l, yv % vectors, kFirst + eb * lanes + r, yv / vectors, h) *
        factor(l, yv % vectors, yv / vectors, h);
    turned_out = transpose_block(block_of_out, lanes, sizeof(float), l, r, {yv, eb, h});
    (*out_)(l, eb, y, h, o) = undef<float>();
    (*out_)(l, eb, y, h, first * out_->dim(2).stride()) =
        turned_out.back()(l, y % lanes, y / lanes, eb, h);
    (*lse_)(y, h, o) = undef<float>();
    (*lse_)(y, h, first) = row_lse(y % lanes, (y / lanes) % vectors, y / tile, h);
  }

  void set_layouts() {
    set_vectors(q, lanes);
    set_vectors(*out_, lanes);
    set_mins(keys, values, *lse_);
    values.dim(0).set_bounds(0, kStep).set_stride(1);
    values.dim(1).set_stride(kStep);
    out_->dim(4).set_stride(1);
    lse_->dim(2).set_stride(1);
    if (mask_ != nullptr) set_vectors(*mask_, lanes);
  }

  void schedule_tiles() {
    Func out = *out_, lse = *lse_;
    out.update()
        .split(y, t, yi, tile, TailStrategy::GuardWithIf)
        .split(yi, j, r, lanes)
        .reorder(l, r, eb, j, t, h)
        .gpu_blocks(t, h)
        .vectorize(l)
        .unroll(r)
        .never_partition_all();
    lse.update()
        .split(y, t, yi, tile, TailStrategy::GuardWithIf)
        .gpu_blocks(t, h)
        .never_partition_all()
        .compute_with(out.update(), t);
    for (Func f : {qs, limits, state, factor, row_lse}) {
      f.compute_at(out, t).store_in(MemoryType::Stack).vectorize(l);
      f.bound_extent(j, vectors).bound_extent(t, 1).unroll(j);
      if (f.dimensions() > 3) f.bound_extent(h, 1);
    }
    qs.bound_storage(d, kMaxVectors * kLanes);
    qs.split(d, db, r, lanes, TailStrategy::RoundUp).reorder(l, r, j, db).unroll(r);
    state.bound_storage(row, kFirst + kMaxVectors * kLanes).never_partition_all();
    state.update()
        .split(rs.x, xo, xi, held)
        .reorder(l, j, xi, xo, rs.y, rs.z, rs.w)
        .vectorize(l)
        .unroll(j)
        .unroll(xi)
        .unroll(xo)
        .unroll(rs.z)
        .never_partition_all();
    for (Func f : turned_q) {
      f.compute_at(qs, j).bound_extent(j, 1).bound_extent(db, 1).bound_extent(t, 1);
    }
    for (Func f : turned_out) f.compute_at(out, eb).bound_extent(yv, 1).bound_extent(eb, 1);
    for (std::vector<Func>* steps : {&turned_q, &turned_out}) {
      for (Func f : *steps) {
        f.store_in(MemoryType::Register).vectorize(l).unroll(r);
        f.bound_extent(l, lanes).bound_extent(r, lanes);
        f.bound_extent(h, 1);
      }
    }
  }

  void schedule_blocks() {
    for (Func f : {dot, s, tops, top, p, sums, sum, pv}) {
      f.bound_extent(j, vectors).bound_extent(b, 1).bound_extent(t, 1).bound_extent(h, 1);
      f.compute_at(state, rs.w).store_in(MemoryType::Stack).vectorize(l).unroll(j);
    }
    for (Func f : {s, p}) {
      f.bound_storage(c, block);
      f.update().split(js.x, xo, xi, held).reorder(l, j, xi, xo, js.y);
      f.update().vectorize(l).unroll(j).unroll(xi).unroll(xo);
    }
    for (Func f : {tops, sums}) {
      f.bound_extent(u, kStep).unroll(u).store_in(MemoryType::Register);
      f.update().reorder(l, j, u, ju).vectorize(l).unroll(j).unroll(u);
    }
    tops.compute_at(top, Var::outermost());
    sums.compute_at(sum, Var::outermost());
    dot.compute_at(s, xo).store_in(MemoryType::Register);
    dot.bound_extent(c, held).unroll(c);
    dot.update(0).reorder(l, j, c, k.x, k.y).vectorize(l).unroll(j).unroll(c).unroll(k.x);
    pv.compute_at(state, xo).store_in(MemoryType::Register);
    pv.bound_extent(e, held).unroll(e);
    pv.update(0).reorder(l, j, e, x, kk.x, kk.y).vectorize(l).unroll(j).unroll(e).unroll(kk.x);
    if (unrolled > 1) pv.update(1).reorder(l, j, e, x, kk_rest).vectorize(l).unroll(j).unroll(e);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionTiles, attention_tiles)
