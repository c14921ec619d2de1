// The steps of a permutation (permutation_generator.cpp) on GPUs, where a work-group draws for all
// of a chunk or bucket at a time. A chunk is small enough for each item to count which of the
// numbers before its own go to the same bucket; buckets are shuffled in local memory. Cells are
// (chunk, bucket), so that their running sum is where the numbers of each begin.
#include "kernels/random/permutation_draws.h"
#include "kernels/recipe/layout.h"
#include "kernels/recipe/places.h"

#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;

// A group's items are lanes of strips that are drawn at a time.
constexpr int kStripsAtOnce = kGroupChunk / kStrip;

template <class Derived>
class GroupStep : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "gpu"};
  GeneratorInput<Buffer<>> key{"key", Int(64), 1};
  GeneratorInput<int> stream_low{"stream_low"};
  GeneratorInput<int> stream_high{"stream_high"};
  GeneratorInput<int> n{"n"};
  GeneratorInput<int> buckets{"buckets"};

 protected:
  Draws draws_{"draws"};
  Var lane{"lane"}, word{"word"}, strip{"strip"}, group{"group"};

  static Expr element(const Expr& lane, const Expr& word, const Expr& strip) {
    return strip * kStrip + word * kLanes + lane;
  }
};

// Of chunks of numbers, the buckets that they go to.
template <class Derived>
class ChunkStep : public GroupStep<Derived> {
 protected:
  using Base = GroupStep<Derived>;
  using Base::buckets, Base::draws_, Base::element, Base::group, Base::key, Base::lane, Base::n,
      Base::stream_high, Base::stream_low, Base::strip, Base::word;
  Func bucket{"bucket"};  // (lane, word, strip, group); -1 past the last number

  static Expr number(const Expr& lane, const Expr& word, const Expr& strip, const Expr& chunk) {
    return chunk * kGroupChunk + element(lane, word, strip);
  }
  void define_buckets() {
    draws_.define(key, stream_low, stream_high, 0,
                  [](const Expr& chunk) { return chunk * kStripsAtOnce; });
    const Expr drawn = below(as_u32(buckets), draws_.of_lane(lane, word, strip, group));
    bucket(lane, word, strip, group) =
        select(number(lane, word, strip, group) < n, cast<int>(drawn), -1);
  }
  void schedule_buckets(const LoopLevel& chunk) {
    bucket.compute_at(chunk).store_in(MemoryType::GPUShared);
    bucket.bound(lane, 0, kLanes).bound(word, 0, 4).bound(strip, 0, kStripsAtOnce);
    bucket.reorder(word, lane, strip).unroll(word).gpu_threads(lane, strip);
    draws_.schedule_lanes(LoopLevel(bucket, lane));
  }
};

// counts(chunk, bucket).
class PermutationGroupCounts : public ChunkStep<PermutationGroupCounts> {
 public:
  Output<Buffer<>> counts{"counts", Int(32), 2};

  void generate() {
    define_buckets();
    RDom all(0, kLanes, 0, 4, 0, kStripsAtOnce, "all");
    found(group, b) = 0;
    found(group, b) += cast<int>(bucket(all.x, all.y, all.z, group) == b);
    counts(group, b) = found(group, b);

    Func out = counts;
    const Var at_once("at_once"), across("across"), down("down");
    out.split(b, at_once, b, kLanes * kStripsAtOnce, TailStrategy::GuardWithIf);
    out.split(b, down, across, kLanes).reorder(across, down, at_once, group);
    out.gpu_blocks(group).gpu_threads(across, down).never_partition_all();
    found.compute_at(out, across).store_in(MemoryType::Stack);
    schedule_buckets(LoopLevel(out, group));
    set_mins(counts, key);
  }

 private:
  Var b{"b"};
  Func found{"found"};
};

// Numbers to their buckets: work(start of the cell + those before it) = i.
class PermutationGroupMoves : public ChunkStep<PermutationGroupMoves> {
 public:
  Input<Buffer<>> starts{"starts", Int(32), 2};
  Output<Buffer<>> work{"work", Int(32), 1};

  void generate() {
    define_buckets();
    RDom others(0, kLanes, 0, 4, 0, kStripsAtOnce, "others");
    const Expr is_before = element(others.x, others.y, others.z) < element(lane, word, strip);
    before(lane, word, strip, group) = 0;
    before(lane, word, strip, group) +=
        cast<int>(bucket(others.x, others.y, others.z, group) == bucket(lane, word, strip, group) &&
                  is_before);
    all = RDom({{0, 4}, {0, kLanes}, {0, kStripsAtOnce}, {0, starts.dim(0).extent()}}, "all");
    const Expr i = number(all[1], all[0], all[2], all[3]);
    all.where(i < n);
    const Expr cell = unsafe_promise_clamped(bucket(all[1], all[0], all[2], all[3]), 0,
                                             starts.dim(1).extent() - 1);
    const Expr place = starts(all[3], cell) + before(all[1], all[0], all[2], all[3]);
    work(t) = undef<int>();
    work(unsafe_promise_clamped(place, 0, work.dim(0).extent() - 1)) = i;

    Func out = work;
    out.update().allow_race_conditions().unroll(all[0]).gpu_blocks(all[3]);
    out.update().gpu_threads(all[1], all[2]).never_partition_all();
    before.compute_at(out, all[1]).store_in(MemoryType::Stack);
    before.bound_extent(word, 4).unroll(word);
    before.update().reorder({word, others.x, others.y, others.z, lane, strip, group}).unroll(word);
    schedule_buckets(LoopLevel(out, all[3]));
    set_mins(starts, work, key);
  }

 private:
  Var t{"t"};
  Func before{"before"};
  RDom all;
};

// The buckets' numbers shuffled as in PermutationShuffle, by one item of the group that has loaded
// them.
class PermutationGroupShuffle : public GroupStep<PermutationGroupShuffle> {
 public:
  Input<int> bucket_strips{"bucket_strips"};  // that a bucket may touch
  Input<Buffer<>> starts{"starts", Int(32), 2}, work{"work", Int(32), 1};
  Output<Buffer<>> out{"out", Int(32), 1};

  void generate() {
    draws_.define(key, stream_low, stream_high, 1,
                  [&](const Expr& b) { return over(begin_of(b), kStrip); });
    // Places are counted from the first strip that the bucket touches.
    const Expr first = over(begin_of(group), kStrip) * kStrip, begin = begin_of(group) - first;
    const Expr own = element(lane, word, strip);
    drawn(lane, word, strip, group) =
        cast<int>(below(as_u32(max(own - begin, 0) + 1), draws_.of_lane(lane, word, strip, group)));
    const Expr place = min(first + q, n - 1), is_single = buckets == 1;
    given(q, group) = select(is_single, place, work(select(is_single, 0, place)));

    // One item does all, which reads some steps' numbers at a time.
    const Expr most = bucket_strips * kStrip - 1;
    RDom steps({{0, 2}, {0, kSteps}, {0, over(most + kSteps, kSteps)}, {0, 1}}, "steps");
    const Expr at = begin + turn * kSteps + k,
               read = unsafe_promise_clamped(min(at, most), 0, most);
    other(k, turn, group) =
        begin + drawn(read & (kLanes - 1), (read / kLanes) & 3, read / kStrip, group);
    number(k, turn, group) = given(read, group);
    const Expr to_place = begin + steps[2] * kSteps + steps[1];
    const Expr from_place = other(steps[1], steps[2], group);
    steps.where(to_place < begin_of(group + 1) - first);
    const auto promised = [&](const Expr& e) { return unsafe_promise_clamped(e, 0, most); };
    shuffled(q, group) = undef<int>();
    shuffled(promised(select(steps[0] == 0, to_place, from_place)), group) = select(
        steps[0] == 0, shuffled(promised(from_place), group), number(steps[1], steps[2], group));

    RDom all({{0, kLanes}, {0, kStripsAtOnce}, {0, rows()}, {0, buckets}}, "all");
    const Expr from = (all[2] * kStripsAtOnce + all[1]) * kLanes + all[0];
    const Expr first_of = over(begin_of(all[3]), kStrip) * kStrip, to = first_of + from;
    all.where(to >= begin_of(all[3]) && to < begin_of(all[3] + 1));
    out(t) = undef<int>();
    out(unsafe_promise_clamped(to, 0, n - 1)) =
        shuffled(unsafe_promise_clamped(from, 0, most), all[3]);

    Func stored = out;
    stored.update().allow_race_conditions().gpu_blocks(all[3]).gpu_threads(all[0], all[1]);
    stored.update().never_partition_all();
    const LoopLevel bucket(stored, all[3]);
    for (Func func : {shuffled, given, drawn}) {
      func.compute_at(bucket).store_in(MemoryType::GPUShared).never_partition_all();
    }
    shuffled.update().unroll(steps[0]).unroll(steps[1]).never_partition_all();
    shuffled.update().allow_race_conditions().gpu_threads(steps[3]);
    for (Func func : {other, number}) {
      func.compute_at(shuffled, steps[2]).store_in(MemoryType::Stack).unroll(k);
    }
    const Var line("line"), row("row"), at_once("at_once");
    given.split(q, line, lane, kLanes).split(line, at_once, row, kStripsAtOnce);
    given.gpu_threads(lane, row);
    // Of all strips: what is read of them depends on numbers that the host does not have.
    drawn.bound(lane, 0, kLanes).bound(word, 0, 4).bound(strip, 0, bucket_strips);
    drawn.split(strip, at_once, row, kStripsAtOnce, TailStrategy::GuardWithIf);
    drawn.reorder(word, lane, row, at_once).unroll(word).gpu_threads(lane, row);
    draws_.schedule_lanes(LoopLevel(drawn, lane));
    set_mins(out, work, starts, key);
  }

 private:
  static constexpr int kSteps = 4;

  Var t{"t"}, q{"q"}, k{"k"}, turn{"turn"};
  Func drawn{"drawn"}, given{"given"}, other{"other"}, number{"number"}, shuffled{"shuffled"};

  Expr rows() const { return over(bucket_strips * 4 + kStripsAtOnce - 1, kStripsAtOnce); }
  // Of a bucket, or the one past the last.
  Expr begin_of(const Expr& b) const {
    const Expr is_last = b >= buckets;
    return select(is_last, n, b == 0, 0, starts(0, select(is_last, 0, b)));
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PermutationGroupCounts, permutation_group_counts)
HALIDE_REGISTER_GENERATOR(ballast::kernels::PermutationGroupMoves, permutation_group_moves)
HALIDE_REGISTER_GENERATOR(ballast::kernels::PermutationGroupShuffle, permutation_group_shuffle)
