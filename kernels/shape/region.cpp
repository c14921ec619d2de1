#include "kernels/shape/region.h"

#include "kernels/plan/chunks.h"
#include "kernels/plan/registers.h"
#include "kernels/plan/streaming.h"
#include "kernels/recipe/lanes.h"

#include <algorithm>
#include <array>

namespace ballast::kernels {

std::vector<int64_t> dense_strides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

DType raw_type(uint64_t bytes) {
  return bytes == 1   ? DType::kU8
         : bytes == 2 ? DType::kF16
         : bytes == 4 ? DType::kI32
                      : DType::kI64;
}

View dense_view(uint32_t slot, const Shape& shape) { return {slot, 0, dense_strides(shape)}; }

namespace {

constexpr size_t kLoops = 6;  // of a kernel

// Loops innermost first. A fill has no source: `from` is then the target again.
struct Move {
  DeviceClass device_class = DeviceClass::kCpu;
  uint64_t bytes = 4;
  std::vector<int64_t> extents;
  View from, to;

  void swap_loops(size_t a, size_t b) {
    std::swap(extents[a], extents[b]);
    std::swap(from.strides[a], from.strides[b]);
    std::swap(to.strides[a], to.strides[b]);
  }
  void move_to_front(size_t loop) {
    for (; loop > 0; --loop) swap_loops(loop, loop - 1);
  }
};

// Drops loops of one step and merges neighbours that both views run through as one.
Move make_move(DeviceClass device_class, uint64_t bytes, const Shape& shape, const View& from,
               const View& to) {
  Move move{device_class, bytes, {}, {from.slot, from.offset, {}}, {to.slot, to.offset, {}}};
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    if (!move.extents.empty()) {
      const int64_t extent = move.extents.back();
      if (from.strides[d] == move.from.strides.back() * extent &&
          to.strides[d] == move.to.strides.back() * extent) {
        move.extents.back() *= shape[d];
        continue;
      }
    }
    move.extents.push_back(shape[d]);
    move.from.strides.push_back(from.strides[d]);
    move.to.strides.push_back(to.strides[d]);
  }
  return move;
}

// Elements of 1, 2 or 4 bytes travel in pairs as long as everything is even and lies together.
void merge_pairs(Move& move, uint64_t limit) {
  const auto find_dense = [&] {
    for (size_t d = 0; d < move.extents.size(); ++d) {
      if (move.from.strides[d] == 1 && move.to.strides[d] == 1) return d;
    }
    return move.extents.size();
  };
  const size_t dense = find_dense();
  if (dense == move.extents.size()) return;
  while (move.bytes < limit) {
    bool is_even =
        move.extents[dense] % 2 == 0 && move.from.offset % 2 == 0 && move.to.offset % 2 == 0;
    for (size_t d = 0; d < move.extents.size(); ++d) {
      if (d == dense) continue;
      is_even = is_even && move.from.strides[d] % 2 == 0 && move.to.strides[d] % 2 == 0;
    }
    if (!is_even) return;
    move.bytes *= 2;
    move.extents[dense] /= 2;
    move.from.offset /= 2;
    move.to.offset /= 2;
    for (size_t d = 0; d < move.extents.size(); ++d) {
      if (d == dense) continue;
      move.from.strides[d] /= 2;
      move.to.strides[d] /= 2;
    }
  }
}

Operand operand_of(const Move& move, const View& view) {
  Operand operand{view.slot, raw_type(move.bytes), move.extents, view.strides, {}};
  operand.extents.resize(kLoops, 1);
  operand.strides.resize(kLoops, 0);
  operand.mins.assign(kLoops, 0);
  operand.extents.push_back(1);
  operand.strides.push_back(1);
  operand.mins.push_back(-view.offset);
  return operand;
}

// How many elements of a row, dense in the target, are moved at once (kRowKinds of
// copy_generator.cpp); the last of them lie over their neighbours.
int64_t choose_lanes(const Move& move) {
  const int64_t length = move.extents[0], stride = move.from.strides[0];
  if (length < kLanes) {
    const bool is_cpu = move.device_class == DeviceClass::kCpu;
    if (!is_cpu || stride < 1) return 1;
    return length >= 8 ? 8 : length >= 4 ? 4 : 1;
  }
  if (stride != 0 && stride != 1) return kLanes;
  for (int64_t lanes : {4 * kLanes, 2 * kLanes}) {
    const int64_t moved = ceil_div(length, lanes) * lanes;
    if (lanes <= length && 4 * moved <= 5 * length) return lanes;
  }
  return kLanes;
}

// Of a CPU's work-group: enough to hide its start, few enough that the cores share a mid-sized
// tensor.
constexpr int64_t kGroupBytes = 128 << 10;

// A work-group takes part of the first three loops. Where that is little, the longest of the others
// comes third: what lies together in the result is written together.
void fill_groups(Move& move) {
  if (move.extents.size() <= 3) return;
  const int64_t bytes = static_cast<int64_t>(move.bytes) * move.extents[0] * move.extents[1];
  if (bytes * move.extents[2] >= kGroupBytes) return;
  const auto longest = std::max_element(move.extents.begin() + 3, move.extents.end());
  if (*longest <= move.extents[2]) return;
  for (auto d = static_cast<size_t>(longest - move.extents.begin()); d > 2; --d) {
    move.swap_loops(d, d - 1);
  }
}

// The lanes, then the steps of x, y and z for one work-group.
std::vector<HostArg> choose_chunks(const Move& move, int64_t lanes) {
  const auto extent = [&](size_t d) { return d < move.extents.size() ? move.extents[d] : 1; };
  const int64_t step = static_cast<int64_t>(move.bytes) * std::max<int64_t>(lanes, 4);
  return move_chunks(move.device_class, lanes, {extent(0), extent(1), extent(2)},
                     std::max<int64_t>(kGroupBytes / step, 1));
}

// The offset of the last element that the view passes.
int64_t last_offset(const Move& move, const View& view) {
  int64_t last = view.offset;
  for (size_t d = 0; d < move.extents.size(); ++d) {
    last += (move.extents[d] - 1) * std::max<int64_t>(view.strides[d], 0);
  }
  return last;
}

void call(Recorder& recorder, const Move& move, const std::string& family,
          std::vector<HostArg> args, const char* variant = "") {
  const std::string kernel = family + std::to_string(move.bytes) + variant;
  for (const View* view : {&move.from, &move.to}) checked_int32(last_offset(move, *view), kernel);
  args.emplace_back(checked_int32(move.to.offset, kernel));
  args.emplace_back(operand_of(move, {move.to.slot, 0, move.to.strides}));
  recorder.call(kernel, move.device_class, args);
}

// Calls `record` for the move, or where it has more loops than a kernel for its parts.
template <class Record>
void for_each_part(Move move, const Record& record) {
  if (move.extents.size() <= kLoops) return record(move);
  const int64_t extent = move.extents.back(), from = move.from.strides.back(),
                to = move.to.strides.back();
  move.extents.pop_back();
  move.from.strides.pop_back();
  move.to.strides.pop_back();
  for (int64_t i = 0; i < extent; ++i) {
    for_each_part(move, record);
    move.from.offset += from;
    move.to.offset += to;
  }
}

// Where a view of the move's elements is a buffer of one dimension: it and what follows the last
// element are not looked at.
Operand flat_operand(const Move& move, const View& view) {
  return {view.slot, raw_type(move.bytes), {last_offset(move, view) + 1}, {1}, {}};
}

// The sides of a block that is transposed, along the result's dense loop and the source's.
struct Sides {
  int64_t p = 0, q = 0;
};

// Whether a result of rows in vectors is large, also beside what is read for it, and every vector a
// cache line of its own.
bool has_streamed_rows(const Move& move) {
  bool is_aligned = move.device_class == DeviceClass::kCpu && move.bytes == 4 &&
                    move.from.strides[0] != 0 && move.to.offset % kLanes == 0 &&
                    move.extents[0] % kLanes == 0;
  int64_t read = 4, written = 4;
  for (size_t d = 0; d < move.extents.size(); ++d) {
    is_aligned = is_aligned && (d == 0 || move.to.strides[d] % kLanes == 0);
    written *= move.extents[d];
    if (move.from.strides[d] != 0) read *= move.extents[d];
  }
  return is_aligned && written >= streamed_move_bytes() &&
         read + written >= 2 * streamed_move_bytes();
}

// Whether a transposed move's result is large, and every vector of it a cache line of its own.
bool is_streamed(const Move& move, Sides sides) {
  const bool joins = sides.p < sides.q;
  bool is_aligned =
      move.bytes == 4 && move.to.offset % kLanes == 0 && move.extents[joins ? 1 : 0] % kLanes == 0;
  uint64_t bytes = move.bytes * move.extents[0];
  for (size_t d = 1; d < move.extents.size(); ++d) {
    is_aligned = is_aligned && ((d == 1 && joins) || move.to.strides[d] % kLanes == 0);
    bytes *= move.extents[d];
  }
  // Rows of the result that lie a page apart would share their sets of the near caches, which hold
  // the two to four of few channels. Vectors of half a line go past a fast last cache worse than
  // through it: 1024x1024 on a Zen 3 0.34 and 0.24 ms.
  const bool shares_sets =
      has_wide_registers() && sides.p == sides.q && move.to.strides[1] % kPageElements == 0;
  return is_aligned &&
         bytes >= static_cast<uint64_t>(shares_sets ? kStreamedBytes : streamed_move_bytes());
}

// What transpose_generator.cpp was built for: a vector of 64 bytes where rows are long enough, and
// no more than 16 elements.
int64_t block_side(uint64_t bytes, int64_t shorter) {
  return bytes == 8 || (bytes == 4 && shorter < kLanes) ? 8 : kLanes;
}

// Of a move whose first loop is dense in the target and whose second loop is in the source; {0, 0}
// where no block fits.
Sides choose_sides(const Move& move) {
  constexpr int64_t kFewChannels = 4;
  const int64_t p = move.extents[0], q = move.extents[1];
  const int64_t shorter = std::min(p, q), side = block_side(move.bytes, shorter);
  if (shorter >= side) return {side, side};
  const int64_t lanes = block_side(move.bytes, std::max(p, q));
  const bool lies_together = p < q ? move.to.strides[1] == p : move.from.strides[0] == q;
  const bool is_few = move.device_class == DeviceClass::kCpu && shorter <= kFewChannels;
  if (!is_few || !lies_together || std::max(p, q) < lanes) return {};
  return p < q ? Sides{p, lanes} : Sides{lanes, q};
}

// How many blocks a work-group takes along the first loop, along the second, and of the others.
std::array<int64_t, 3> choose_block_chunks(const Move& move, Sides sides, bool streams) {
  const int64_t most =
      std::max<int64_t>(kGroupBytes / (static_cast<int64_t>(move.bytes) * sides.p * sides.q), 1);
  // Lines that are asked for in advance lie along the first loop, those of a source that is read
  // while lines are streamed along the second.
  const bool is_square = sides.p == sides.q;
  const int64_t most_p = !is_square ? most : streams ? 4 : 16;
  const int64_t most_q = !is_square ? most : streams ? 32 : 8;
  const int64_t p = std::min(most_p, ceil_div(move.extents[0], sides.p));
  const int64_t q = std::min(most_q, ceil_div(move.extents[1], sides.q));
  int64_t others = 1;
  for (size_t d = 2; d < move.extents.size(); ++d) others *= move.extents[d];
  return {p, q, std::clamp<int64_t>(most / (p * q), 1, others)};
}

// What a kernel is told of a transposed move, and the target. Of fewer loops than a GPU's kernel
// has the first are empty, since it divides for all but the last.
void add_transpose_places(std::vector<HostArg>& args, const Move& move, const std::string& kernel) {
  const auto add = [&](int64_t number) { args.emplace_back(checked_int32(number, kernel)); };
  for (int64_t number : {move.extents[0], move.extents[1], move.from.strides[0], move.to.strides[1],
                         move.from.offset, move.to.offset}) {
    add(number);
  }
  const size_t skipped = move.device_class == DeviceClass::kGpu ? kLoops - move.extents.size() : 0;
  for (size_t d = 2; d < kLoops; ++d) {
    const size_t loop = d - skipped;
    const bool is_loop = d >= 2 + skipped && loop < move.extents.size();
    add(is_loop ? move.extents[loop] : 1);
    add(is_loop ? move.from.strides[loop] : 0);
    add(is_loop ? move.to.strides[loop] : 0);
  }
  args.emplace_back(flat_operand(move, move.to));
}

// A move whose first loop is dense in the target and whose second loop is in the source.
void record_transpose(Recorder& recorder, const Move& move, Sides sides) {
  std::vector<HostArg> args{flat_operand(move, move.from)};
  std::string kernel;
  if (move.device_class == DeviceClass::kGpu) {
    const int64_t side = std::min(move.extents[0], move.extents[1]) > kLanes ? 2 * kLanes : kLanes;
    kernel = fmt::format("transpose_tiles_{}_{}", move.bytes, side);
  } else {
    const bool streams = std::max(sides.p, sides.q) == kLanes && is_streamed(move, sides);
    kernel = fmt::format("transpose_{}_{}x{}{}", move.bytes, sides.p, sides.q,
                         streams ? "_streams" : "");
    for (int64_t chunk : choose_block_chunks(move, sides, streams)) {
      args.emplace_back(checked_int32(chunk, kernel));
    }
  }
  add_transpose_places(args, move, kernel);
  recorder.call(kernel, move.device_class, args);
}

// The distances of a source's elements that copy_generator.cpp has vectors for.
bool has_vectors_of(int64_t stride) { return stride >= -1 && stride <= 2; }

void record_part(Recorder& recorder, Move move) {
  const size_t loops = move.extents.size();
  size_t rows = loops, columns = loops, both = loops;
  for (size_t d = 0; d < loops; ++d) {
    const int64_t from = move.from.strides[d], to = move.to.strides[d];
    if (to == 1) rows = d;
    if (from == 1) columns = d;
    if (to == 1 && has_vectors_of(from)) both = d;
  }
  if (rows < loops && columns < loops && rows != columns) {
    Move transposed = move;
    transposed.move_to_front(columns);
    transposed.move_to_front(rows < columns ? rows + 1 : rows);
    const Sides sides = choose_sides(transposed);
    // A copy of every other element reads whole vectors too.
    const bool is_better = both == loops || sides.p != sides.q;
    if (is_better && sides.p > 0) return record_transpose(recorder, transposed, sides);
  }
  if (both < loops) move.move_to_front(both);
  const int64_t lanes = both < loops ? choose_lanes(move) : 1;
  if (lanes > 1 && move.device_class == DeviceClass::kCpu) fill_groups(move);
  std::vector<HostArg> args{operand_of(move, move.from)};
  for (HostArg& chunk : choose_chunks(move, lanes)) args.push_back(std::move(chunk));
  const bool streams = lanes >= kLanes && has_streamed_rows(move);
  call(recorder, move, "copy_", std::move(args), streams ? "_streams" : "");
}

}  // namespace

void record_copy(Recorder& recorder, DeviceClass device_class, uint64_t bytes, const Shape& shape,
                 const View& from, const View& to) {
  if (elements_of(shape) == 0) return;
  Move move = make_move(device_class, bytes, shape, from, to);
  merge_pairs(move, 4);
  for_each_part(std::move(move), [&](const Move& part) { record_part(recorder, part); });
}

void record_fill(Recorder& recorder, DeviceClass device_class, uint64_t bytes, const Shape& shape,
                 Bits value, const View& to) {
  if (elements_of(shape) == 0) return;
  Move move = make_move(device_class, bytes, shape, to, to);
  merge_pairs(move, 4);
  for (uint64_t width = bytes; width < move.bytes; width *= 2) {
    const auto low = static_cast<uint32_t>(value.low) & ((uint64_t{1} << 8 * width) - 1);
    value.low = static_cast<int32_t>(low | low << 8 * width);
  }
  for_each_part(std::move(move), [&](const Move& part) {
    const bool has_rows = !part.extents.empty() && part.to.strides[0] == 1;
    std::vector<HostArg> args{value.low, value.high};
    for (HostArg& chunk : choose_chunks(part, has_rows ? choose_lanes(part) : 1)) {
      args.push_back(std::move(chunk));
    }
    call(recorder, part, "fill_", std::move(args));
  });
}

}  // namespace ballast::kernels
