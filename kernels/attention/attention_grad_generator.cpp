// The gradients of attention on CPUs in one pass (Dao 2023, FlashAttention-2, algorithm 2): with
// s = scale q k' + mask, p = exp(s - lse), ds = p (dout v' - delta), a work-item walks over tiles
// of queries and blocks of keys, computes p and ds of both and adds what they give to
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

// Rows of `vectors` at whole vectors' distances, as the workspace begins: loads and stores are
// aligned ones.
template <class Sums>
void set_rows_layout(Sums& sums, int lanes, int vectors) {
  set_vectors(sums, lanes);
  sums.dim(1).set_bounds(0, vectors);
  sums.dim(2).set_stride(lanes * vectors);
  for (int i : {3, 4}) sums.dim(i).set_stride(sums.dim(i).stride() / lanes * lanes);
  sums.set_host_alignment(lanes * sizeof(float));
}

class AttentionGradTiles : public Generator<AttentionGradTiles> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> has_mask{"has_mask", false};
  GeneratorParam<bool> narrow{"narrow", false};        // see tile_of()
  GeneratorParam<bool> is_single{"is_single", false};  // a tile of one vector, after whole ones

  Input<Buffer<float, 4>> q{"q"};            // [bh][query][vector][lane]
  Input<Buffer<float, 4>> dout{"dout"};      // the same
  Input<Buffer<float, 3>> keys{"keys"};      // [bh][key][d]
  Input<Buffer<float, 3>> values{"values"};  // [bh][key][e]
  Input<Buffer<float, 2>> lse{"lse"};        // [bh][query]
  Input<Buffer<float, 2>> delta{"delta"};    // [bh][query]
  Input<int> part_keys{"part_keys"};         // whole blocks
  Input<int> first{"first"};                 // query, after whole tiles
  Input<int> query_count{"query_count"};     // queries up to the last tile's
  Input<int> diagonal{"diagonal"};
  Input<float> scale{"scale"};

  void configure() {
    if (has_mask) mask_ = add_input<Buffer<float>>("mask", 6);
    sums_ = add_output<Buffer<float>>("sums", 5);  // [bh][part][row][sum][lane], see define_sums()
  }

  void generate() {
    key_count = keys.dim(1).extent();
    whole = tile_of(narrow);
    lanes = whole.lanes;
    block = whole.key_block;
    vectors = is_single ? 1 : whole.vectors;
    tile = vectors * lanes;
    held = whole.sums / whole.vectors;
    held_keys = whole.sums / kRowVectors;
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
  // l and j are the lane and vector of a query i in tile t, c a key in block b of part n, d and e
  // elements of a row of q and v; x, y and u count rows, chunks of rows and pairs of vectors.
  Var l{"l"}, j{"j"}, r{"r"}, t{"t"}, h{"h"}, n{"n"}, b{"b"}, c{"c"}, d{"d"}, db{"db"}, x{"x"},
      y{"y"}, u{"u"}, v{"v"}, i{"i"}, row{"row"};
  static constexpr int kPointers = 4;
  Expr key_count, depth, value_depth;
  // Queries, and vectors of so many lanes, of a tile; keys of a block; elements of dq and keys
  // whose sums are in registers at a time.
  Tile whole = kWideTile;
  int tile = 0, vectors = 0, lanes = 0, block = 0, held = 0, held_keys = 0;
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
        source(l, db, min(query_at(t, j * lanes + r), query_count - 1), h) * factor;
    const std::vector<Func> steps =
        transpose_block(rows, lanes, sizeof(float), l, r, {j, db, t, h});
    target(l, j, d, t, h) = steps.back()(l, d % lanes, j, d / lanes, t, h);
    return steps;
  }

  // near = rows of a tensor, result = their products with `in_lanes`. More rows than there are
  // registers for their addresses are copied, to constant distances.
  void define_product(Func near, Func result, Input<Buffer<float, 3>>& rows, Func in_lanes,
                      RDom k) {
    const Expr key = min(n * part_keys + b * block + c, key_count - 1);
    near(d, c, b, n, h) = rows(d, key, h);
    result(l, j, c, b, t, n, h) = 0.0f;
    result(l, j, c, b, t, n, h) =
        fma_f32(near(k, c, b, n, h), in_lanes(l, j, k, t, h), result(l, j, c, b, t, n, h));
  }

  // p and ds of a block, loops trimmed to the keys that may be seen. Queries past the last, and
  // those that attend to nothing (lse = -infinity), get p = 0.
  void define_strips() {
    const Expr query = query_at(t, j * lanes + l), at = min(query, query_count - 1);
    limits(l, j, t) = cast<float>(min(key_count, query + 1 + diagonal));
    lses(l, j, t, h) =
        select(query >= query_count, kInfinity, eq(lse(at, h), -kInfinity), kInfinity, lse(at, h));
    deltas(l, j, t, h) = delta(at, h);
    define_product(near_k, s, keys, qs, RDom(0, depth, "k"));
    define_product(near_v, dp, values, douts, RDom(0, value_depth, "e"));
    js = RDom(0, held, 0, block / held, "js");
    // All keys of the last chunk of dk and dv: hidden ones have p = 0.
    const Expr seen_keys = key_limit(t) - b * block;
    js.where(js.y * held < (seen_keys + held_keys - 1) / held_keys * held_keys);
    const Expr cc = js.y * held + js.x, key = n * part_keys + b * block + cc;
    const Expr lane = i % lanes, vector = i / lanes;
    Expr score = s(lane, vector, cc, b, t, n, h);
    if (mask_ != nullptr) {
      const Expr heads = mask_->dim(4).extent(), tile_at = first / whole.queries() + t;
      score += (*mask_)(lane, vector, min(key, key_count - 1), tile_at, h % heads, h / heads);
    }
    const Expr is_seen = lt(cast<float>(key), limits(lane, vector, t));
    const Expr seen = select(is_seen, score, -kInfinity);
    p(i, c, b, t, n, h) = undef<float>();
    p(i, cc, b, t, n, h) = exp_of_negative(seen - lses(lane, vector, t, h));
    ds(i, c, b, t, n, h) = undef<float>();
    ds(i, cc, b, t, n, h) =
        p(i, cc, b, t, n, h) * (dp(lane, vector, cc, b, t, n, h) - deltas(lane, vector, t, h));
  }

  // What a block adds: dq' as rows of elements and lanes of queries, dk and dv as rows of keys.
  void define_additions() {
    RDom kk(0, block, "kk"), qk(0, tile, "qk"), qv(0, tile, "qv");
    kk.where(b * block + kk < key_limit(t));
    const Expr key = n * part_keys + b * block + kk;
    dq(l, j, x, y, b, t, n, h) = 0.0f;
    dq(l, j, x, y, b, t, n, h) = fma_f32(
        keys(y * held + x, key, h), ds(j * lanes + l, kk, b, t, n, h), dq(l, j, x, y, b, t, n, h));
    const auto add = [&](Func sum, RDom query, Func strip, Input<Buffer<float, 4>>& rows) {
      query.where(query_at(t, query) < query_count);
      const Expr row_vectors = min(rows.dim(1).extent(), kMaxVectors * kLanes / lanes);
      const Expr vector = min(u * kRowVectors + j, row_vectors - 1);
      sum(l, j, x, y, u, b, t, n, h) = 0.0f;
      sum(l, j, x, y, u, b, t, n, h) =
          fma_f32(strip(query, y * held_keys + x, b, t, n, h),
                  rows(l, vector, query_at(t, query), h), sum(l, j, x, y, u, b, t, n, h));
    };
    add(dk, qk, ds, q);
    add(dv, qv, p, dout);
  }

  // One Func holds all sums, as a block adds to all of them. rs counts the registers' sums, chunks
  // of elements (of dq) or keys, pairs of vectors of a row, what is added to (dq, dk, dv), blocks,
  // tiles.
  void define_sums() {
    define_additions();
    const int chunks = block / held_keys, pair = kRowVectors * lanes;
    const Expr pairs = (max(depth, value_depth) + pair - 1) / pair;
    const Expr tiles = (query_count - first + tile - 1) / tile;
    rs =
        RDom({{0, whole.sums}, {0, chunks}, {0, pairs}, {0, 3}, {0, part_keys / block}, {0, tiles}},
             "rs");
    const Expr what = rs[3], b_ = rs[4], t_ = rs[5], limit = key_limit(t_);
    rs.where(b_ * block < limit);
    const Expr has_chunk = b_ * block + rs[1] * held_keys < limit;
    const Expr chunk = rs[2] * chunks + rs[1];  // of elements of q: no fewer than there are
    rs.where((what == 0 && chunk * held < depth) ||
             (what == 1 && has_chunk && rs[2] * pair < depth) ||
             (what == 2 && has_chunk && rs[2] * pair < value_depth));
    // Rows are the registers' sums: dk of a pair of vectors after the other, dv, dq' tile by tile.
    const Expr dk_rows = pairs * (part_keys / held_keys);
    const Expr key_row = rs[2] * (part_keys / held_keys) + b_ * chunks + rs[1];
    const Expr tile_at = first / whole.queries() + t_;
    const Expr place = select(what == 0, 2 * dk_rows + tile_at * (depth / held) + chunk, what == 1,
                              key_row, dk_rows + key_row);
    const Expr target = unsafe_promise_clamped(place, 0, sums_->dim(2).extent() - 1);
    Func sums = *sums_;
    // A tile of one vector comes after whole ones; dq' of vectors past the last is never read.
    sums(l, v, row, n, h) = is_single ? undef<float>() : Expr(0.0f);
    const Expr vector = min(rs[0] % whole.vectors, vectors - 1);
    const auto of_keys = [&](Func sum) {
      return sum(l, rs[0] % kRowVectors, rs[0] / kRowVectors, rs[1], rs[2], b_, t_, n, h);
    };
    sums(l, rs[0], target, n, h) +=
        select(what == 0, dq(l, vector, rs[0] / whole.vectors, chunk, b_, t_, n, h), what == 1,
               of_keys(dk), of_keys(dv));
  }

  void set_layouts() {
    set_vectors(q, lanes);
    set_vectors(dout, lanes);
    set_mins(keys, values, lse, delta);
    if (mask_ != nullptr) set_vectors(*mask_, lanes);
    set_rows_layout(*sums_, lanes, whole.sums);
  }

  void schedule_sums() {
    Func sums = *sums_;
    sums.bound(v, 0, whole.sums).gpu_blocks(n, h).vectorize(l).unroll(v);
    sums.update()
        .reorder(l, rs[0], rs[1], rs[2], rs[3], rs[4], rs[5], n, h)
        .gpu_blocks(n, h)
        .vectorize(l)
        .unroll(rs[0])
        .unroll(rs[3])
        .never_partition_all();
    for (Func f : {dq, dk, dv}) {
      const bool is_dq = f.name() == dq.name();
      f.compute_at(sums, rs[1]).store_in(MemoryType::Register);
      f.bound_extent(j, is_dq ? vectors : kRowVectors);
      f.bound_extent(x, is_dq ? held : held_keys).bound_extent(y, 1).bound_extent(b, 1);
      f.bound_extent(t, 1).bound_extent(n, 1).bound_extent(h, 1).vectorize(l).unroll(j).unroll(x);
      if (!is_dq) f.bound_extent(u, 1);
      const RVar step(is_dq ? "kk$x" : f.name() == dk.name() ? "qk$x" : "qv$x");
      f.update().reorder(l, j, x, step).vectorize(l).unroll(j).unroll(x);
    }
  }

  void schedule_tiles() {
    for (Func f : {qs, douts, limits, lses, deltas}) {
      f.compute_at(*sums_, rs[5]).store_in(MemoryType::Stack).vectorize(l);
      f.bound_extent(j, vectors).bound_extent(t, 1).unroll(j);
      if (f.dimensions() > 3) f.bound_extent(h, 1);
    }
    for (Func f : {qs, douts}) {
      f.bound_storage(d, kMaxVectors * kLanes);
      f.split(d, db, r, lanes, TailStrategy::RoundUp).reorder(l, r, j, db).unroll(r);
      for (Func step : f.name() == qs.name() ? turned_q : turned_dout) {
        step.compute_at(f, j).store_in(MemoryType::Register).vectorize(l).unroll(r);
        step.bound_extent(l, lanes).bound_extent(r, lanes).bound_extent(j, 1);
        step.bound_extent(db, 1).bound_extent(t, 1).bound_extent(h, 1);
      }
    }
  }

  void schedule_strips() {
    for (Func f : {p, ds}) {
      f.compute_at(*sums_, rs[4]).store_in(MemoryType::Stack).bound_storage(c, block);
      f.bound_extent(i, tile).bound_extent(b, 1).bound_extent(t, 1).bound_extent(n, 1);
      f.bound_extent(h, 1).vectorize(i, lanes);
      f.update().split(i, j, l, lanes).reorder(l, j, js.x, js.y);
      f.update().vectorize(l).unroll(j).unroll(js.x).never_partition_all();
    }
    if (held > kPointers) {
      for (Func f : {near_k, near_v}) {
        f.compute_at(f.name() == near_k.name() ? p : ds, js.y).store_in(MemoryType::Stack);
        f.bound_extent(c, held).bound_extent(b, 1).bound_extent(n, 1).bound_extent(h, 1);
        f.bound_storage(d, (kMaxVectors + 1) * kLanes);
        f.split(d, db, d, kLanes, TailStrategy::RoundUp).reorder(d, c, db).vectorize(d).unroll(c);
      }
    }
    for (Func f : {s, dp}) {
      f.compute_at(f.name() == s.name() ? p : ds, js.y).store_in(MemoryType::Register);
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
  GeneratorParam<bool> narrow{"narrow", false};  // see tile_of()

  Input<Buffer<float, 5>> sums{"sums"};
  Input<int> first_row{"first_row"};
  Input<int> part_keys{"part_keys"};
  Input<int> key_count{"key_count"};
  Input<float> factor{"factor"};
  Output<Buffer<float, 5>> out{"out"};  // [bh][part][row][vector][lane]

  void generate() {
    const int vectors = kRowVectors * tile_of(narrow).lanes / kLanes;
    RDom y(0, part_keys, "y");
    y.where(n * part_keys + y < key_count);
    out(l, v, row, n, h) = undef<float>();
    out(l, v, y, n, h) =
        sums(l, v % vectors, first_row + (v / vectors) * part_keys + y, n, h) * factor;
    set_rows_layout(sums, kLanes, vectors);
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
  GeneratorParam<bool> narrow{"narrow", false};  // see tile_of()

  Input<Buffer<float, 5>> sums{"sums"};
  Input<int> first_row{"first_row"};
  Input<int> group_vectors{"group_vectors"};  // of queries, a work-group's
  Input<float> factor{"factor"};
  Output<Buffer<float, 4>> out{"out"};

  void generate() {
    const int lanes = tile_of(narrow).lanes, vectors = tile_of(narrow).vectors;
    RDom n(0, sums.dim(3).extent(), "n");
    const Expr depth = out.dim(1).extent() * lanes;
    Func total("total"), block("block");
    total(l, r, yv, eb, h) = 0.0f;
    total(l, r, yv, eb, h) +=
        sums(l, yv % vectors, first_row + (yv / vectors) * depth + eb * lanes + r, n, h);
    block(l, r, yv, eb, h) = total(l, r, yv, eb, h) * factor;
    std::vector<Func> steps = transpose_block(block, lanes, sizeof(float), l, r, {yv, eb, h});
    out(l, eb, y, h) = steps.back()(l, y % lanes, y / lanes, eb, h);
    set_rows_layout(sums, lanes, vectors);
    set_vectors(out, lanes);
    out.split(y, yv, r, lanes, TailStrategy::GuardWithIf)
        .split(yv, yo, yv, group_vectors, TailStrategy::GuardWithIf)
        .reorder(l, r, eb, yv, yo, h)
        .gpu_blocks(yo, h)
        .vectorize(l)
        .unroll(r)
        .never_partition_all();
    steps.push_back(total);
    for (Func f : steps) {
      f.compute_at(out, eb).store_in(MemoryType::Register).vectorize(l).unroll(r);
      f.bound_extent(l, lanes).bound_extent(r, lanes).bound_extent(yv, 1).bound_extent(eb, 1);
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
