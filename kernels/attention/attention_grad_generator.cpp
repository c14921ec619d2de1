// The gradients of attention on CPUs in one pass (Dao 2023, FlashAttention-2, algorithm 2): with
// s = scale q k' + mask, p = exp(s - lse), ds = p (dout v' - delta), a work-item walks over tiles
// of 32 queries and blocks of keys, computes p and ds of both and adds what they give to
//
//   dv = p' dout, dk = ds' q and dq' = k' ds
//
// in memory. Five products, no atomics, sums in a fixed order. It owns a head, or a part of its
// keys; then dq' is one of as many parts. attention_grad_rows and attention_grad_queries bring the
// sums into the tensors' layout and apply the scale.
#include "kernels/attention/attention_recipe.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/shuffle.h"

namespace ballast::kernels {
namespace {

using namespace attention;
using namespace Halide;

// Rows of whole vectors at whole vectors' distances, as the workspace begins: loads and stores are
// aligned ones.
template <class Sums>
void set_sums_layout(Sums& sums) {
  set_vectors(sums);
  sums.dim(1).set_bounds(0, kVectors);
  sums.dim(2).set_stride(kQueries);
  for (int i : {3, 4}) sums.dim(i).set_stride(sums.dim(i).stride() / kQueries * kQueries);
  sums.set_host_alignment(kLanes * sizeof(float));
}

class AttentionGradTiles : public Generator<AttentionGradTiles> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> has_mask{"has_mask", false};
  GeneratorParam<int> block{"block", kKeyBlock};
  GeneratorParam<int> vectors{"vectors", kVectors};  // of queries in a tile
  GeneratorParam<int> held{"held", kStep};  // of a step, whose sums are in registers at a time

  Input<Buffer<float, 4>> q{"q"};            // [bh][query][vector][lane]
  Input<Buffer<float, 4>> dout{"dout"};      // the same
  Input<Buffer<float, 3>> keys{"keys"};      // [bh][key][d]
  Input<Buffer<float, 3>> values{"values"};  // [bh][key][e]
  Input<Buffer<float, 2>> lse{"lse"};        // [bh][query]
  Input<Buffer<float, 2>> delta{"delta"};    // [bh][query]
  Input<int> part_keys{"part_keys"};         // whole blocks
  Input<int> first{"first"};                 // query, after whole pairs of vectors
  Input<int> query_count{"query_count"};     // queries up to the last tile's
  Input<int> diagonal{"diagonal"};
  Input<float> scale{"scale"};

  void configure() {
    if (has_mask) mask_ = add_input<Buffer<float>>("mask", 6);
    sums_ = add_output<Buffer<float>>("sums", 5);  // [bh][part][row][vector][lane], see target()
  }

  void generate() {
    key_count = keys.dim(1).extent();
    tile = vectors * kLanes;
    depth = min(keys.dim(0).extent(), kMaxVectors * kLanes);
    value_depth = min(values.dim(0).extent(), kMaxVectors * kLanes);
    turned_q = turned(q, scale, qs);
    turned_dout = turned(dout, 1.0f, douts);
    define_strips();
    define_sums();
    set_layouts();
    schedule_sums();
    schedule_tiles();
    schedule_strips();
  }

 private:
  // l and j are the lane and vector of a query in tile t, c a key in block b of part n, d and e
  // elements of a row of q and v; x, y and u count rows, chunks of rows and pairs of vectors.
  Var l{"l"}, j{"j"}, r{"r"}, t{"t"}, h{"h"}, n{"n"}, b{"b"}, c{"c"}, d{"d"}, db{"db"}, x{"x"},
      y{"y"}, u{"u"}, row{"row"};
  Expr key_count, depth, value_depth;
  int tile = 0;
  RVar xo{"xo"}, xi{"xi"};
  RDom rs;
  Func qs{"qs"}, douts{"douts"}, limits{"limits"}, lses{"lses"}, deltas{"deltas"}, near_k{"near_k"},
      near_v{"near_v"}, s{"s"}, dp{"dp"}, p{"p"}, ds{"ds"}, dq{"dq"}, dk{"dk"}, dv{"dv"};
  RDom js;
  std::vector<Func> turned_q, turned_dout;
  GeneratorInput<Buffer<float>>* mask_ = nullptr;
  GeneratorOutput<Buffer<float>>* sums_ = nullptr;

  // Query `i` of a tile.
  Expr query_at(const Expr& t_, const Expr& i) { return first + t_ * tile + i; }

  // Keys of a part from here on are hidden from all queries of a tile.
  Expr key_limit(const Expr& t_) {
    const Expr seen = min(key_count, query_at(t_, tile) + diagonal);
    return min(seen - n * part_keys, part_keys);
  }

  // Rows of `source` as lanes.
  std::vector<Func> turned(Input<Buffer<float, 4>>& source, const Expr& factor, Func target) {
    Func rows("rows");
    rows(l, r, j, db, t, h) =
        source(l, db, min(query_at(t, j * kLanes + r), query_count - 1), h) * factor;
    const std::vector<Func> steps =
        transpose_block(rows, kLanes, sizeof(float), l, r, {j, db, t, h});
    target(l, j, d, t, h) = steps.back()(l, d % kLanes, j, d / kLanes, t, h);
    return steps;
  }

  // near = 8 rows of a tensor at constant distances, result = their products with `lanes`.
  void define_product(Func near, Func result, Input<Buffer<float, 3>>& rows, Func lanes, RDom k) {
    const Expr key = min(n * part_keys + b * block + c, key_count - 1);
    near(d, c, b, n, h) = rows(d, key, h);
    result(l, j, c, b, t, n, h) = 0.0f;
    result(l, j, c, b, t, n, h) =
        fma_f32(near(k, c, b, n, h), lanes(l, j, k, t, h), result(l, j, c, b, t, n, h));
  }

  // p and ds of a block, loops trimmed to the keys that may be seen. Queries past the last, and
  // those that attend to nothing (lse = -infinity), get p = 0.
  void define_strips() {
    const Expr query = query_at(t, j * kLanes + l), at = min(query, query_count - 1);
    limits(l, j, t) = cast<float>(min(key_count, query + 1 + diagonal));
    lses(l, j, t, h) =
        select(query >= query_count, kInfinity, eq(lse(at, h), -kInfinity), kInfinity, lse(at, h));
    deltas(l, j, t, h) = delta(at, h);
    define_product(near_k, s, keys, qs, RDom(0, depth, "k"));
    define_product(near_v, dp, values, douts, RDom(0, value_depth, "e"));
    js = RDom(0, kStep, 0, block / kStep, "js");
    js.where(b * block + js.y * kStep < key_limit(t));
    const Expr cc = js.y * kStep + js.x, key = n * part_keys + b * block + cc;
    Expr score = s(l, j, cc, b, t, n, h);
    if (mask_ != nullptr) {
      const Expr heads = mask_->dim(4).extent(), tile_at = first / kQueries + t;
      score += (*mask_)(l, j, min(key, key_count - 1), tile_at, h % heads, h / heads);
    }
    const Expr seen = select(lt(cast<float>(key), limits(l, j, t)), score, -kInfinity);
    p(l, j, c, b, t, n, h) = undef<float>();
    p(l, j, cc, b, t, n, h) = exp_of_negative(seen - lses(l, j, t, h));
    ds(l, j, c, b, t, n, h) = undef<float>();
    ds(l, j, cc, b, t, n, h) =
        p(l, j, cc, b, t, n, h) * (dp(l, j, cc, b, t, n, h) - deltas(l, j, t, h));
  }

  // What a block adds: dq' as rows of elements and lanes of queries, dk and dv as rows of keys.
  void define_additions() {
    RDom kk(0, block, "kk"), qk(0, tile, "qk"), qv(0, tile, "qv");
    kk.where(b * block + kk < key_limit(t));
    const Expr key = n * part_keys + b * block + kk;
    dq(l, j, x, y, b, t, n, h) = 0.0f;
    dq(l, j, x, y, b, t, n, h) =
        fma_f32(keys(y * kStep + x, key, h), ds(l, j, kk, b, t, n, h), dq(l, j, x, y, b, t, n, h));
    const auto add = [&](Func sum, RDom i, Func strip, Input<Buffer<float, 4>>& rows) {
      i.where(query_at(t, i) < query_count);
      const Expr vector = min(u * kVectors + j, min(rows.dim(1).extent(), kMaxVectors) - 1);
      sum(l, j, x, y, u, b, t, n, h) = 0.0f;
      sum(l, j, x, y, u, b, t, n, h) =
          fma_f32(strip(i % kLanes, i / kLanes, y * kStep + x, b, t, n, h),
                  rows(l, vector, query_at(t, i), h), sum(l, j, x, y, u, b, t, n, h));
    };
    add(dk, qk, ds, q);
    add(dv, qv, p, dout);
  }

  // One Func holds all sums, as a block adds to all of them. rs counts rows, chunks of rows, pairs
  // of vectors, what is added to (dq, dk, dv), blocks, tiles.
  void define_sums() {
    define_additions();
    const Expr pairs = (max(depth, value_depth) + kQueries - 1) / kQueries;
    const Expr tiles = (query_count - first + tile - 1) / tile;
    rs = RDom(
        {{0, kStep}, {0, block / kStep}, {0, pairs}, {0, 3}, {0, part_keys / block}, {0, tiles}},
        "rs");
    const Expr what = rs[3], b_ = rs[4], t_ = rs[5], limit = key_limit(t_);
    rs.where(b_ * block < limit);
    const Expr has_chunk = b_ * block + rs[1] * kStep < limit;
    const Expr element = rs[2] * block + rs[1] * kStep;  // of q; pairs are no fewer than blocks
    rs.where((what == 0 && element < depth) ||
             (what == 1 && has_chunk && rs[2] * kQueries < depth) ||
             (what == 2 && has_chunk && rs[2] * kQueries < value_depth));
    // Rows: dk of a pair of vectors after the other, dv, dq' tile by tile.
    const Expr key_row = rs[2] * part_keys + b_ * block + rs[1] * kStep + rs[0];
    const Expr end = sums_->dim(2).extent();
    const Expr place =
        select(what == 0, 2 * pairs * part_keys + (first / kQueries + t_) * depth + element + rs[0],
               what == 1, key_row, pairs * part_keys + key_row);
    const Expr target = unsafe_promise_clamped(place, 0, end - 1);
    Func sums = *sums_;
    // Tiles of one vector come after those of two; dq' of a vector past the last is never read.
    sums(l, j, row, n, h) = vectors == kVectors ? Expr(0.0f) : undef<float>();
    const Expr vector = min(j, vectors - 1);
    sums(l, j, target, n, h) += select(
        what == 0, dq(l, vector, rs[0], element / kStep, b_, t_, n, h), what == 1,
        dk(l, j, rs[0], rs[1], rs[2], b_, t_, n, h), dv(l, j, rs[0], rs[1], rs[2], b_, t_, n, h));
  }

  void set_layouts() {
    set_vectors(q);
    set_vectors(dout);
    set_mins(keys, values, lse, delta);
    if (mask_ != nullptr) set_vectors(*mask_);
    set_sums_layout(*sums_);
  }

  void schedule_sums() {
    Func sums = *sums_;
    sums.bound(j, 0, kVectors).gpu_blocks(n, h).vectorize(l).unroll(j);
    sums.update()
        .split(rs[0], xo, xi, held)
        .reorder(l, j, xi, xo, rs[1], rs[2], rs[3], rs[4], rs[5], n, h)
        .gpu_blocks(n, h)
        .vectorize(l)
        .unroll(j)
        .unroll(xi)
        .unroll(rs[3])
        .never_partition_all();
    for (Func f : {dq, dk, dv}) {
      f.compute_at(sums, xo)
          .store_in(MemoryType::Register)
          .bound_extent(x, held)
          .bound_extent(y, 1);
      f.bound_extent(j, f.name() == dq.name() ? int(vectors) : kVectors).bound_extent(b, 1);
      f.bound_extent(t, 1).bound_extent(n, 1).bound_extent(h, 1).vectorize(l).unroll(j).unroll(x);
    }
    dq.update().reorder(l, j, x, RVar("kk$x")).vectorize(l).unroll(j).unroll(x);
    dk.bound_extent(u, 1).update().reorder(l, j, x, RVar("qk$x")).vectorize(l).unroll(j).unroll(x);
    dv.bound_extent(u, 1).update().reorder(l, j, x, RVar("qv$x")).vectorize(l).unroll(j).unroll(x);
  }

  void schedule_tiles() {
    for (Func f : {qs, douts, limits, lses, deltas}) {
      f.compute_at(*sums_, rs[5]).store_in(MemoryType::Stack).vectorize(l);
      f.bound_extent(j, vectors).bound_extent(t, 1).unroll(j);
      if (f.dimensions() > 3) f.bound_extent(h, 1);
    }
    for (Func f : {qs, douts}) {
      f.bound_storage(d, kMaxVectors * kLanes);
      f.split(d, db, r, kLanes, TailStrategy::RoundUp).reorder(l, r, j, db).unroll(r);
      for (Func step : f.name() == qs.name() ? turned_q : turned_dout) {
        step.compute_at(f, j).store_in(MemoryType::Register).vectorize(l).unroll(r);
        step.bound_extent(l, kLanes).bound_extent(r, kLanes).bound_extent(j, 1);
        step.bound_extent(db, 1).bound_extent(t, 1).bound_extent(h, 1);
      }
    }
  }

  void schedule_strips() {
    for (Func f : {p, ds}) {
      f.compute_at(*sums_, rs[4]).store_in(MemoryType::Stack).bound_storage(c, block);
      f.bound_extent(j, vectors).bound_extent(b, 1).bound_extent(t, 1).bound_extent(n, 1);
      f.bound_extent(h, 1).vectorize(l).unroll(j);
      f.update().split(js.x, xo, xi, held).reorder(l, j, xi, xo, js.y);
      f.update().vectorize(l).unroll(j).unroll(xi).never_partition_all();
    }
    for (Func f : {near_k, near_v}) {
      f.compute_at(f.name() == near_k.name() ? p : ds, js.y).store_in(MemoryType::Stack);
      f.bound_extent(c, kStep).bound_extent(b, 1).bound_extent(n, 1).bound_extent(h, 1);
      f.bound_storage(d, (kMaxVectors + 1) * kLanes);
      f.split(d, db, d, kLanes, TailStrategy::RoundUp).reorder(d, c, db).vectorize(d).unroll(c);
    }
    for (Func f : {s, dp}) {
      f.compute_at(f.name() == s.name() ? p : ds, xo).store_in(MemoryType::Register);
      f.bound_extent(j, vectors).bound_extent(c, held).bound_extent(b, 1).bound_extent(t, 1);
      f.bound_extent(n, 1).bound_extent(h, 1).vectorize(l).unroll(j).unroll(c);
      f.update()
          .reorder(l, j, c, RVar(f.name() == s.name() ? "k$x" : "e$x"))
          .vectorize(l)
          .unroll(j)
          .unroll(c);
    }
  }
};

// out[bh][row][vector][lane], dk or dv, of the rows of sums from first_row on.
class AttentionGradRows : public Generator<AttentionGradRows> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<float, 5>> sums{"sums"};
  Input<int> first_row{"first_row"};
  Input<int> part_keys{"part_keys"};
  Input<int> key_count{"key_count"};
  Input<float> factor{"factor"};
  Output<Buffer<float, 5>> out{"out"};  // [bh][part][row][vector][lane]

  void generate() {
    RDom y(0, part_keys, "y");
    y.where(n * part_keys + y < key_count);
    out(l, v, row, n, h) = undef<float>();
    out(l, v, y, n, h) =
        sums(l, v % kVectors, first_row + (v / kVectors) * part_keys + y, n, h) * factor;
    set_sums_layout(sums);
    set_vectors(out);
    out.update().reorder(l, v, y, n, h).gpu_blocks(n, h).vectorize(l).never_partition_all();
  }

 private:
  Var l{"l"}, v{"v"}, row{"row"}, n{"n"}, h{"h"};
};

// out[bh][query][vector][lane], dq, of the rows of sums from first_row on: the parts are added up.
class AttentionGradQueries : public Generator<AttentionGradQueries> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<float, 5>> sums{"sums"};
  Input<int> first_row{"first_row"};
  Input<int> group_vectors{"group_vectors"};  // of queries, a work-group's
  Input<float> factor{"factor"};
  Output<Buffer<float, 4>> out{"out"};

  void generate() {
    RDom n(0, sums.dim(3).extent(), "n");
    const Expr depth = out.dim(1).extent() * kLanes;
    Func total("total"), block("block");
    total(l, r, yv, eb, h) = 0.0f;
    total(l, r, yv, eb, h) +=
        sums(l, yv % kVectors, first_row + (yv / kVectors) * depth + eb * kLanes + r, n, h);
    block(l, r, yv, eb, h) = total(l, r, yv, eb, h) * factor;
    std::vector<Func> steps = transpose_block(block, kLanes, sizeof(float), l, r, {yv, eb, h});
    out(l, eb, y, h) = steps.back()(l, y % kLanes, y / kLanes, eb, h);
    set_sums_layout(sums);
    set_vectors(out);
    out.split(y, yv, r, kLanes, TailStrategy::GuardWithIf)
        .split(yv, yo, yv, group_vectors, TailStrategy::GuardWithIf)
        .reorder(l, r, eb, yv, yo, h)
        .gpu_blocks(yo, h)
        .vectorize(l)
        .unroll(r)
        .never_partition_all();
    steps.push_back(total);
    for (Func f : steps) {
      f.compute_at(out, eb).store_in(MemoryType::Register).vectorize(l).unroll(r);
      f.bound_extent(l, kLanes).bound_extent(r, kLanes).bound_extent(yv, 1).bound_extent(eb, 1);
      f.bound_extent(h, 1);
    }
    total.update().reorder(l, r, n).vectorize(l).unroll(r);
  }

 private:
  Var l{"l"}, r{"r"}, y{"y"}, yv{"yv"}, yo{"yo"}, eb{"eb"}, h{"h"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionGradTiles, attention_grad_tiles)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionGradRows, attention_grad_rows)
HALIDE_REGISTER_GENERATOR(ballast::kernels::AttentionGradQueries, attention_grad_queries)
