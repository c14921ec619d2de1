// A permutation in two steps. Every number goes to a random bucket, in order (counts, then cursors,
// then the moves); each bucket, small enough for the nearest cache, is shuffled by Fisher and
// Yates' method. That is Rao and Sandelius' algorithm: all permutations are equally likely, and
// what is drawn does not depend on how the work is divided.
//
// Element i takes word (i % 64) / 16 of block i / 64 * 16 + i % 16: 16 lanes of blocks give 64
// words in order. The blocks' key is the state's first block. Numbers are counted in chunks, a row
// of cursors each; `work` holds the rows, then the numbers by bucket.
#include "kernels/random/permutation_draws.h"
#include "kernels/recipe/layout.h"

#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;

template <class Derived>
class PermutationStep : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorInput<Buffer<>> key{"key", Int(64), 1};
  GeneratorInput<int> stream_low{"stream_low"};
  GeneratorInput<int> stream_high{"stream_high"};
  GeneratorInput<int> n{"n"};
  GeneratorInput<int> buckets{"buckets"};
  GeneratorInput<int> chunk_strips{"chunk_strips"};  // of a chunk

 protected:
  Draws draws_{"draws"};

  bool is_gpu() const { return device_class.value() == "gpu"; }
  Expr chunks() const {
    const Expr strips = (n + kStrip - 1) / kStrip;
    return (strips + chunk_strips - 1) / chunk_strips;
  }
  // Element e of `strip` of `chunk`.
  Expr element(const Expr& e, const Expr& strip, const Expr& chunk) const {
    return (chunk * chunk_strips + strip) * kStrip + e;
  }
  void define_buckets() {
    draws_.define(key, stream_low, stream_high, 0,
                  [&](const Expr& chunk) { return chunk * chunk_strips; });
  }
  Expr bucket(const Expr& e, const Expr& strip, const Expr& chunk) const {
    const Expr number = cast<int>(below(as_u32(buckets), draws_.at(e, strip, chunk)));
    return unsafe_promise_clamped(number, 0, kMaxBuckets - 1);
  }
};

// counts(b, c): how many numbers of chunk c go to bucket b.
class PermutationCounts : public PermutationStep<PermutationCounts> {
 public:
  Output<Buffer<>> counts{"counts", Int(32), 2};

  void generate() {
    define_buckets();
    all_ = RDom(0, kStrip, 0, chunk_strips, "all");
    all_.where(element(all_.x, all_.y, c) < n);
    found(b, c) = 0;
    found(bucket(all_.x, all_.y, c), c) += 1;
    counts(b, c) = found(b, c);
  }
  void schedule() {
    set_mins(counts, key);
    counts.dim(1).set_stride(counts.dim(0).extent());
    Func out = counts;
    out.gpu_blocks(c);
    found.compute_at(out, c).store_in(MemoryType::Stack).bound_extent(b, kMaxBuckets);
    if (!is_gpu()) found.vectorize(b, kLanes);
    found.update().never_partition_all();
    draws_.schedule(out, c, found, all_.y, is_gpu());
  }

 private:
  Var b{"b"}, c{"c"};
  Func found{"found"};
  RDom all_;
};

// cursors(b, c): where the first number of chunk c in bucket b goes.
class PermutationCursors : public Generator<PermutationCursors> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<Buffer<>> counts{"counts", Int(32), 2};
  Output<Buffer<>> cursors{"cursors", Int(32), 2};

  void generate() {
    const Expr buckets = counts.dim(0).extent(), chunks = counts.dim(1).extent();
    all_ = RDom(0, buckets, 0, chunks, "all");
    own(b, c) = 0;
    total(b, c) = 0;
    own(all_.x, c) += select(all_.y < c, counts(all_.x, all_.y), 0);
    total(all_.x, c) += counts(all_.x, all_.y);
    before = RDom(1, buckets - 1, "before");
    first(b, c) = 0;
    first(before, c) = first(before - 1, c) + total(before - 1, c);
    cursors(b, c) = first(b, c) + own(b, c);
  }
  void schedule() {
    set_mins(counts, cursors);
    cursors.dim(1).set_stride(cursors.dim(0).extent());
    counts.dim(1).set_stride(cursors.dim(0).extent());
    Func out = cursors;
    out.gpu_blocks(c);
    for (Func func : {own, total, first}) {
      func.compute_at(out, c).store_in(MemoryType::Stack).bound_extent(b, kMaxBuckets);
    }
  }

 private:
  Var b{"b"}, c{"c"};
  Func own{"own"}, total{"total"}, first{"first"};
  RDom all_, before;
};

// Numbers to their buckets: work(cursor) = i, after which the cursor moves on.
class PermutationMoves : public PermutationStep<PermutationMoves> {
 public:
  Output<Buffer<>> work{"work", Int(32), 1};

  void generate() {
    define_buckets();
    work(t) = undef<int>();
    all_ = RDom({{0, 2}, {0, kStrip}, {0, chunk_strips}, {0, chunks()}}, "all");
    const Expr i = element(all_[1], all_[2], all_[3]);
    all_.where(i < n);
    const Expr size = work.dim(0).extent();
    const Expr cursor = all_[3] * buckets + bucket(all_[1], all_[2], all_[3]);
    const Expr place = unsafe_promise_clamped(work(cursor), 0, size - 1);
    work(select(all_[0] == 0, chunks() * buckets + place, cursor)) =
        select(all_[0] == 0, i, place + 1);
  }
  void schedule() {
    work.dim(0).set_min(0);
    key.dim(0).set_min(0);
    Func out = work;
    out.update().allow_race_conditions().unroll(all_[0]).gpu_blocks(all_[3]).never_partition_all();
    draws_.schedule(out, all_[3], all_[2], is_gpu());
  }

 private:
  Var t{"t"};
  RDom all_;
};

// The buckets' numbers shuffled, inside out: the k-th goes to the place of a random one of the
// first k, which goes to the end. Of a single bucket the numbers are 0..n-1, and `work` is not
// read.
class PermutationShuffle : public PermutationStep<PermutationShuffle> {
 public:
  Input<int> bucket_strips{"bucket_strips"};  // that a bucket may touch
  Input<Buffer<>> work{"work", Int(32), 1};
  Output<Buffer<>> out{"out", Int(32), 1};

  void generate() {
    draws_.define(key, stream_low, stream_high, 1,
                  [&](const Expr& b) { return begin_of(b) / kStrip; });
    out(t) = undef<int>();
    all_ = RDom({{0, 2}, {0, kStrip}, {0, bucket_strips}, {0, buckets}}, "all");
    const Expr b = all_[3], begin = begin_of(b), is_single = buckets == 1;
    const Expr end = select(is_single, n, work(select(is_single, 0, last_row() + b)));
    const Expr at = (begin / kStrip + all_[2]) * kStrip + all_[1];
    all_.where(at >= begin && at < end);
    const Expr place = unsafe_promise_clamped(at, 0, n - 1);
    const Expr drawn = cast<int>(below(as_u32(at - begin + 1), draws_.at(all_[1], all_[2], b)));
    const Expr other = unsafe_promise_clamped(begin + drawn, 0, n - 1);
    const Expr number =
        select(is_single, at, work(select(is_single, 0, chunks() * buckets + place)));
    out(select(all_[0] == 0, place, other)) = select(all_[0] == 0, out(other), number);
  }
  void schedule() {
    set_mins(out, work, key);
    Func result = out;
    result.update()
        .allow_race_conditions()
        .unroll(all_[0])
        .gpu_blocks(all_[3])
        .never_partition_all();
    draws_.schedule(result, all_[3], all_[2], is_gpu());
  }

 private:
  Var t{"t"};
  RDom all_;

  // The cursors of the last chunk stand at the ends of the buckets.
  Expr last_row() const { return (chunks() - 1) * buckets; }
  Expr begin_of(const Expr& b) const { return select(b == 0, 0, work(max(last_row() + b - 1, 0))); }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PermutationCounts, permutation_counts)
HALIDE_REGISTER_GENERATOR(ballast::kernels::PermutationCursors, permutation_cursors)
HALIDE_REGISTER_GENERATOR(ballast::kernels::PermutationMoves, permutation_moves)
HALIDE_REGISTER_GENERATOR(ballast::kernels::PermutationShuffle, permutation_shuffle)
