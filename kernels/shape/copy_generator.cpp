// Moves elements of one size between strided views of two buffers, and fills a view.
//
// A view is up to six loops, innermost first (x along the rows, then y, z, w...), and a last
// dimension of stride 1 that adds the view's offset to every address. A row is written by vectors
// of 16 lanes where both sides allow it, four or two at a time, or of 8 or 4; the last of a row
// move inwards and repeat what their neighbours did, so that rows of any length and alignment need
// no tail. Sources that run backwards or skip every other element are read by whole vectors, whose
// lanes are then taken.
//
// Stores wait for their lines one after the other, most of all where they cross two, so the line
// of a later vector is asked for: 1024 x 512 beside 1024 x 500 in 0.20 ms instead of 0.28, a loop
// that writes past the caches takes 0.17 (2 cores of a Sapphire Rapids, Nov 2026). Where rows are
// whole lines it `streams`, as that loop does.
#include "kernels/recipe/hints.h"
#include "kernels/recipe/lanes.h"
#include "kernels/recipe/shuffle.h"

#include <algorithm>
#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kDimensions = 7;
constexpr int kAhead = 5;  // vectors

// How many lanes of a row are moved at once, and the distance of its elements in the source.
struct RowKind {
  int lanes, stride;
};
constexpr RowKind kRowKinds[] = {{64, 1}, {64, 0}, {32, 1},  {32, 0}, {16, 1}, {16, 0},
                                 {16, 2}, {8, 1},  {16, -1}, {8, 2},  {4, 1},  {4, 2}};

template <class Derived>
class RegionGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> bytes{"bytes", 4};
  // Rows of the result are whole lines, and not of one element that repeats.
  GeneratorParam<bool> streams{"streams", false};

 protected:
  using BufferInput = GeneratorInput<Buffer<>>;

  Type element() const { return UInt(8 * bytes); }

  // After the other inputs.
  void add_target() {
    for (const char* name : {"lanes", "chunk_x", "chunk_y", "chunk_z", "offset"}) {
      numbers_.push_back(this->template add_input<int>(name));
    }
    target_ = this->template add_output<Buffer<>>("result", element(), kDimensions);
  }

  // The view filled from `source`, or with `value` where there is none.
  void fill_target(BufferInput* source, const Expr& value) {
    // Algorithm.
    Func target = *target_;
    const Expr lanes = *numbers_[0], chunk = *numbers_[1], offset = *numbers_[4];
    const Expr extent = target_->dim(0).extent(), steps = (extent + lanes - 1) / lanes;
    target(x, y, z, w0, w1, w2, o) = undef(element());
    const bool is_gpu = device_class.value() == "gpu";
    RDom row({{0, is_gpu ? Expr(1) : lanes}, {0, chunk}, {0, (steps + chunk - 1) / chunk}}, "row");
    const Expr step = row[2] * chunk + row[1], at = min(step * lanes, extent - lanes) + row[0];
    row.where(step < steps);
    const Expr start = at - row[0];
    const Expr moved = source == nullptr ? value : taken(*source, lanes, start, row[0]);
    const Expr asked = with_prefetch(moved, target(at + kAhead * kLanes, y, z, w0, w1, w2, offset));
    const Expr stored = streams ? streamed(moved) : select(lanes < kLanes, moved, asked);
    target(at, y, z, w0, w1, w2, offset) = is_gpu ? moved : stored;
    set_layout(*target_);
    if (source != nullptr) set_layout(*source);

    // Schedule.
    if (is_gpu) return schedule_gpu(target, row);
    for (const auto& [width, stride] : kRowKinds) {
      const bool is_whole_line = width >= kLanes && stride != 0;
      if ((source == nullptr && stride != 1) || (streams && !is_whole_line)) continue;
      Expr is_kind = lanes == width && target_->dim(0).stride() == 1;
      if (source != nullptr) is_kind = is_kind && source->dim(0).stride() == stride;
      Stage stage = target.update().specialize(is_kind);
      stage.allow_race_conditions().vectorize(row[0], std::min(width, kLanes));
      if (width > kLanes) stage.unroll(row[0]);
      schedule(stage, row);
    }
    if (!streams) schedule(target.update().specialize(lanes == 1), row);
    target.update().specialize_fail(
        "lanes are 64, 32, 16, 8, 4 or 1, and 1 where no rows are dense");
  }

 private:
  Var x{"x"}, y{"y"}, z{"z"}, w0{"w0"}, w1{"w1"}, w2{"w2"}, o{"o"};
  std::vector<GeneratorInput<int>*> numbers_;
  GeneratorOutput<Buffer<>>* target_ = nullptr;

  // Lane `lane` of the vector that begins at `start`, or the element there. The source's last
  // dimension steps by single elements whatever its rows do.
  Expr taken(BufferInput& source, const Expr& lanes, const Expr& start, const Expr& lane) const {
    const auto at = [&](const Expr& place, const Expr& step) {
      return Expr(source(place, y, z, w0, w1, w2, step));
    };
    if (device_class.value() == "gpu") return at(start + lane, 0);
    const Expr stride = source.dim(0).stride();
    const auto is_kind = [&](RowKind kind) { return lanes == kind.lanes && stride == kind.stride; };
    const Expr last = at(start + kLanes - 1, lane);
    Expr result = select(is_kind({kLanes, -1}),
                         take_lanes(last, last, kLanes, [](int i) { return kLanes - 1 - i; }),
                         at(start + lane, 0));
    for (int width : {4, 8, kLanes}) {
      // The second vector begins one earlier.
      const auto even = [width](int i) { return 2 * i < width ? 2 * i : 2 * i + 1; };
      result =
          select(is_kind({width, 2}),
                 take_lanes(at(start, lane), at(start, lane + width - 1), width, even), result);
    }
    return result;
  }

  template <class Tensor>
  void set_layout(Tensor& tensor) {
    for (int d = 0; d < kDimensions - 1; ++d) tensor.dim(d).set_min(0);
    tensor.dim(0).set_stride(Expr());
    tensor.dim(kDimensions - 1).set_stride(1);
  }

  void schedule(Stage stage, const RDom& row) {
    const Var yo("yo"), yi("yi"), zo("zo"), zi("zi"), all("all");
    stage.allow_race_conditions()
        .split(y, yo, yi, *numbers_[2], TailStrategy::GuardWithIf)
        .split(z, zo, zi, *numbers_[3], TailStrategy::GuardWithIf)
        .reorder({row[1], yi, zi, row[2], yo, zo, w0, w1, w2})
        .fuse(w1, w2, all)
        .fuse(w0, all, all)
        .fuse(zo, all, all)
        .gpu_blocks(row[2], yo, all)
        .never_partition_all();
  }

  // An item moves some rows' elements of a column. Divisions for the number of a group would take
  // longer than all else: up to three loops there are none.
  void schedule_gpu(Func target, const RDom& row) {
    constexpr int kRows = 4;
    const Var yo("yo"), yi("yi"), ys("ys"), yt("yt"), zo("zo"), zi("zi"), all("all");
    const auto split = [&](Stage stage) {
      stage.allow_race_conditions()
          .split(y, yo, yi, *numbers_[2] * kRows, TailStrategy::GuardWithIf)
          .split(yi, ys, yt, *numbers_[2], TailStrategy::GuardWithIf)
          .split(z, zo, zi, *numbers_[3], TailStrategy::GuardWithIf)
          .reorder({ys, zi, row[1], yt, row[2], yo, zo, w0, w1, w2})
          .unroll(ys, kRows)
          .gpu_threads(row[1], yt)
          .never_partition_all();
      return stage;
    };
    const auto is_one = [&](int d) { return target_->dim(d).extent() == 1; };
    split(target.update().specialize(is_one(3) && is_one(4) && is_one(5)))
        .gpu_blocks(row[2], yo, zo);
    split(target.update())
        .fuse(w1, w2, all)
        .fuse(w0, all, all)
        .fuse(zo, all, all)
        .gpu_blocks(row[2], yo, all);
  }
};

class Copy : public RegionGenerator<Copy> {
 public:
  void configure() {
    source_ = add_input<Buffer<>>("source", element(), kDimensions);
    add_target();
  }
  void generate() { fill_target(source_, {}); }

 private:
  BufferInput* source_ = nullptr;
};

// One value, given as its bits.
class Fill : public RegionGenerator<Fill> {
 public:
  Input<int> low{"low"}, high{"high"};

  void configure() { add_target(); }
  void generate() {
    Expr value = cast(element(), cast<uint32_t>(low));
    if (bytes == 8) value = value | (cast(element(), cast<uint32_t>(high)) << 32);
    fill_target(nullptr, value);
  }
};

// start + i * step; 64-bit numbers come as two words.
class Arange : public Generator<Arange> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<Type> type{"type", Float(32)};

  void configure() {
    const bool is_float = type.value().is_float();
    for (const char* name : {"start", "step"}) {
      if (is_float) {
        floats_.push_back(add_input<float>(name));
      } else {
        words_.push_back(add_input<int>(name + std::string("_low")));
        words_.push_back(add_input<int>(name + std::string("_high")));
      }
    }
    result_ = add_output<Buffer<>>("result", type, 1);
  }

  void generate() {
    Func result = *result_;
    const Expr index = cast(type.value(), i);
    result(i) = strict_float(number(0) + index * number(1));
    result_->dim(0).set_min(0);
    constexpr int kChunk = 8192, kItems = 256;
    const Var outer("outer"), inner("inner"), lane("lane");
    if (device_class.value() == "gpu") {
      result.gpu_tile(i, outer, inner, kItems, TailStrategy::GuardWithIf);
    } else {
      result.split(i, outer, inner, kChunk, TailStrategy::GuardWithIf).gpu_blocks(outer);
    }
  }

 private:
  Var i{"i"};
  std::vector<GeneratorInput<float>*> floats_;
  std::vector<GeneratorInput<int>*> words_;
  GeneratorOutput<Buffer<>>* result_ = nullptr;

  Expr number(size_t n) const {
    if (!floats_.empty()) return *floats_[n];
    const Expr low = cast<int64_t>(cast<uint32_t>(*words_[2 * n]));
    return cast(type.value(), cast<int64_t>(*words_[2 * n + 1]) << 32 | low);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::Copy, copy_region)
HALIDE_REGISTER_GENERATOR(ballast::kernels::Fill, fill_region)
HALIDE_REGISTER_GENERATOR(ballast::kernels::Arange, arange)
