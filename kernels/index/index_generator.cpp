// Rows picked by number: gather, scatter-add and one-hot.
//
// A tensor is seen as [outer][row][x]: rows of the axis that numbers pick. Numbers lie in [word][x]
// [i][o] with free strides: 0 along x and o where one number picks a whole row, dense where every
// element has its own. Of 64-bit numbers there are two words. A number n < 0 counts from the end;
// what lies outside of the rows reads as 0 and writes nothing.
#include "kernels/index/row_numbers.h"
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/recipe/hints.h"
#include "kernels/recipe/lanes.h"
#include "kernels/recipe/layout.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

template <class Derived>
class RowsGenerator : public Generator<Derived> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

 protected:
  using BufferInput = GeneratorInput<Buffer<>>;
  using BufferOutput = GeneratorOutput<Buffer<>>;

  Var x{"x"}, y{"y"}, z{"z"};

  bool is_gpu() const { return device_class.value() == "gpu"; }

  // Steps of `lanes` elements along a row of `extent`; the last one moves inwards.
  struct Row {
    RDom dom;
    Expr at;
  };
  static Row make_row(const Expr& extent, const Expr& lanes, const Expr& chunk) {
    const Expr steps = (extent + lanes - 1) / lanes;
    Row row{RDom({{0, lanes}, {0, chunk}, {0, (steps + chunk - 1) / chunk}}, "row"), {}};
    const Expr step = row.dom[2] * chunk + row.dom[1];
    row.dom.where(step < steps);
    row.at = min(step * lanes, extent - lanes) + row.dom[0];
    return row;
  }

  void schedule_row(Stage stage, const RDom& row, const Expr& chunk_y, const Expr& chunk_z) {
    const Var yo("yo"), yi("yi"), zo("zo"), zi("zi");
    stage.allow_race_conditions()
        .split(y, yo, yi, chunk_y, TailStrategy::GuardWithIf)
        .split(z, zo, zi, chunk_z, TailStrategy::GuardWithIf)
        .reorder({row[1], yi, zi, row[2], yo, zo})
        .gpu_blocks(row[2], yo, zo)
        .never_partition_all();
    if (is_gpu()) stage.gpu_threads(row[1], yi);
  }
};

// result[o][i][x] = table[o][number][x]: what is read and written, and how much by a work-group.
template <class Derived>
class GatherGenerator : public RowsGenerator<Derived> {
 public:
  GeneratorParam<int> bytes{"bytes", 4};

  void configure() {
    const Type element = UInt(8 * bytes);
    table_ = this->template add_input<Buffer<>>("table", element, 3);
    numbers_ = this->template add_input<Buffer<>>("numbers", Int(32), 4);
    for (const char* name : {"chunk_x", "chunk_y", "chunk_z"}) {
      sizes_.push_back(this->template add_input<int>(name));
    }
    result_ = this->template add_output<Buffer<>>("result", element, 3);
  }

 protected:
  GeneratorInput<Buffer<>>*table_ = nullptr, *numbers_ = nullptr;
  std::vector<GeneratorInput<int>*> sizes_;
  GeneratorOutput<Buffer<>>* result_ = nullptr;
};

// result[o][i][x] = table[o][number(x, i, o)][x], element by element.
class Gather : public GatherGenerator<Gather> {
 public:
  void generate() {
    Func result = *result_;
    result(x, y, z) = undef(result_->type());
    const Row row = make_row(result_->dim(0).extent(), 1, *sizes_[0]);
    const PickedRow picked = picked_row(*numbers_, row.at, y, z, table_->dim(1).extent());
    result(row.at, y, z) = select(picked.is_valid, (*table_)(row.at, picked.value, z),
                                  Internal::make_zero(result_->type()));
    set_any_layout(*table_, *numbers_, *result_);
    table_->dim(0).set_stride(1);
    result_->dim(0).set_stride(1);
    schedule_row(result.update(), row.dom, *sizes_[1], *sizes_[2]);
  }
};

// result[o][i][x] = table[o][number(i)][x], by vectors. The rows may lie anywhere, where no cache's
// own prefetching follows: of whole vectors of 16 the one after the next is asked for while one is
// copied. Of narrower rows, cores have several under way by themselves.
class GatherRows : public GatherGenerator<GatherRows> {
 public:
  GeneratorParam<int> lanes{"lanes", kLanes};
  GeneratorParam<bool> streams{"streams", false};  // rows of whole cache lines

  void generate() {
    Func result = *result_, pick("pick");
    const Expr rows = table_->dim(1).extent(), count = result_->dim(1).extent();
    const PickedRow now = picked_row(*numbers_, 0, y, 0, rows);
    const PickedRow later = picked_row(*numbers_, 0, min(y + 2, count - 1), 0, rows);
    pick(y) = {now.value, cast<int32_t>(now.is_valid), later.value};
    const Row row = make_row(result_->dim(0).extent(), int(lanes), *sizes_[0]);
    const auto table_at = [&](const Expr& number) {
      return (*table_)(row.at, unsafe_promise_clamped(number, 0, rows - 1), z);
    };
    const Expr element = table_at(pick(y)[0]);
    const Expr value = select(
        pick(y)[1] != 0, lanes == kLanes ? with_prefetch(element, table_at(pick(y)[2])) : element,
        Internal::make_zero(result_->type()));
    result(x, y, z) = undef(result_->type());
    result(row.at, y, z) = streams ? streamed(value) : value;
    set_mins(*table_, *numbers_, *result_);
    result.update().allow_race_conditions().vectorize(row.dom[0], int(lanes));
    schedule_row(result.update(), row.dom, *sizes_[1], *sizes_[2]);
    if (lanes < kLanes) result.update().specialize(*sizes_[0] == 1);
    pick.compute_at(result, Var("yi")).store_in(MemoryType::Register).bound_extent(y, 1);
  }
};

// result[o][i] = table[o][number(i)]: rows of one element. Sixteen numbers are read at a time and
// serve several o.
class GatherLanes : public RowsGenerator<GatherLanes> {
 public:
  GeneratorParam<int> bytes{"bytes", 4};

  void configure() {
    const Type element = UInt(8 * bytes);
    table_ = add_input<Buffer<>>("table", element, 2);
    numbers_ = add_input<Buffer<>>("numbers", Int(32), 4);
    for (const char* name : {"chunk_i", "chunk_o"}) sizes_.push_back(add_input<int>(name));
    result_ = add_output<Buffer<>>("result", element, 2);
  }

  void generate() {
    // Algorithm.
    Func result = *result_, place("place");
    const Expr chunk_i = *sizes_[0], chunk_o = *sizes_[1], rows = table_->dim(0).extent();
    const Expr extent = result_->dim(0).extent(), outer = result_->dim(1).extent();
    const Expr steps = (extent + kLanes - 1) / kLanes;
    RDom all({{0, kLanes},
              {0, chunk_o},
              {0, chunk_i},
              {0, (steps + chunk_i - 1) / chunk_i},
              {0, (outer + chunk_o - 1) / chunk_o}},
             "all");
    const Expr step = all[3] * chunk_i + all[2], at_o = all[4] * chunk_o + all[1];
    all.where(step < steps);
    all.where(at_o < outer);
    const PickedRow number = picked_row(*numbers_, 0, i + l, 0, rows);
    place(l, i) = {number.value, cast<int32_t>(number.is_valid)};
    const Expr first = min(step * kLanes, extent - kLanes);
    const Expr row = clamp(place(all[0], first)[0], 0, rows - 1);
    result(x, y) = undef(result_->type());
    result(first + all[0], at_o) = select(place(all[0], first)[1] != 0, (*table_)(row, at_o),
                                          Internal::make_zero(result_->type()));
    set_mins(*table_, *numbers_, *result_);

    // Schedule.
    result.update()
        .allow_race_conditions()
        .vectorize(all[0])
        .gpu_blocks(all[3], all[4])
        .never_partition_all();
    place.compute_at(result, all[2]).store_in(MemoryType::Register);
    place.bound_extent(l, kLanes).bound_extent(i, 1).vectorize(l);
  }

 private:
  Var l{"l"}, i{"i"};
  BufferInput *table_ = nullptr, *numbers_ = nullptr;
  std::vector<GeneratorInput<int>*> sizes_;
  BufferOutput* result_ = nullptr;
};

// result[o][number(x, i, o)][x] += updates[o][i][x], for `count` x from `begin` on. Work is divided
// by columns and by ranges of rows (parts): whoever owns a range reads all numbers and takes the
// updates that are its own, in the order of i. So nothing is atomic and sums repeat bit for bit.
class ScatterAdd : public RowsGenerator<ScatterAdd> {
 public:
  GeneratorParam<Type> type{"type", Float(32)};

  void configure() {
    numbers_ = add_input<Buffer<>>("numbers", Int(32), 4);
    updates_ = add_input<Buffer<>>("updates", type, 3);
    for (const char* name :
         {"lanes", "begin", "count", "chunk_x", "chunk_z", "parts", "part_rows"}) {
      sizes_.push_back(add_input<int>(name));
    }
    result_ = add_output<Buffer<>>("result", type, 3);
  }

  void generate() {
    // Algorithm.
    Func result = *result_;
    const Expr lanes = *sizes_[0], begin = *sizes_[1], count = *sizes_[2], chunk = *sizes_[3];
    const Expr parts = *sizes_[5], part_rows = *sizes_[6], steps = count / lanes;
    result(x, y, z) = undef(type.value());
    RDom all({{0, lanes},
              {0, chunk},
              {0, updates_->dim(1).extent()},
              {0, (steps + chunk - 1) / chunk},
              {0, parts}},
             "all");
    const Expr step = all[3] * chunk + all[1], at = begin + step * lanes + all[0];
    const PickedRow picked = picked_row(*numbers_, at, all[2], z, result_->dim(1).extent());
    all.where(step < steps);
    all.where(picked.is_valid && picked.value >= all[4] * part_rows &&
              picked.value < (all[4] + 1) * part_rows);
    result(at, picked.value, z) =
        strict_float(wrapped_add(result(at, picked.value, z), (*updates_)(at, all[2], z)));
    set_any_layout(*numbers_, *updates_, *result_);
    updates_->dim(0).set_stride(1);
    result_->dim(0).set_stride(1);

    // Schedule.
    if (!is_gpu()) {
      Stage stage = result.update().specialize(lanes == kLanes && numbers_->dim(1).stride() == 0);
      stage.allow_race_conditions().vectorize(all[0], kLanes);
      schedule(stage, all);
    }
    schedule(result.update().specialize(lanes == 1), all);
    result.update().specialize_fail("lanes are 16 or 1");
  }

 private:
  BufferInput *numbers_ = nullptr, *updates_ = nullptr;
  std::vector<GeneratorInput<int>*> sizes_;
  BufferOutput* result_ = nullptr;

  void schedule(Stage stage, const RDom& all) {
    const Var zo("zo"), zi("zi");
    stage.allow_race_conditions().split(z, zo, zi, *sizes_[4], TailStrategy::GuardWithIf);
    stage.reorder({all[1], all[2], zi, all[3], all[4], zo});
    stage.gpu_blocks(all[3], all[4], zo).never_partition_all();
    if (is_gpu()) stage.gpu_threads(all[1]);
  }
};

// result[z][y][c] = number(y, z) == c ? on : off, with free strides.
class OneHot : public RowsGenerator<OneHot> {
 public:
  GeneratorParam<int> bytes{"bytes", 4};

  void configure() {
    numbers_ = add_input<Buffer<>>("numbers", Int(32), 4);
    for (const char* name :
         {"on_low", "on_high", "off_low", "off_high", "lanes", "chunk_x", "chunk_y", "chunk_z"}) {
      sizes_.push_back(add_input<int>(name));
    }
    result_ = add_output<Buffer<>>("result", UInt(8 * bytes), 3);
  }

  void generate() {
    Func result = *result_;
    const Expr lanes = *sizes_[4];
    result(x, y, z) = undef(result_->type());
    const Row row = make_row(result_->dim(0).extent(), lanes, *sizes_[5]);
    const PickedRow number = number_at(*numbers_, 0, y, z);
    // One comparison a lane: to join truth values of vectors takes AVX2 longer than all else.
    const Expr wanted = select(number.is_valid, number.value, -1);
    result(row.at, y, z) = select(wanted == row.at, bits(0), bits(2));
    set_any_layout(*numbers_, *result_);
    if (!is_gpu()) {
      Stage stage = result.update().specialize(lanes == kLanes && result_->dim(0).stride() == 1);
      stage.allow_race_conditions().vectorize(row.dom[0], kLanes);
      schedule_row(stage, row.dom, *sizes_[6], *sizes_[7]);
    }
    schedule_row(result.update().specialize(lanes == 1), row.dom, *sizes_[6], *sizes_[7]);
    result.update().specialize_fail("lanes are 16 or 1");
  }

 private:
  BufferInput* numbers_ = nullptr;
  std::vector<GeneratorInput<int>*> sizes_;
  BufferOutput* result_ = nullptr;

  Expr bits(size_t at) const {
    const Type element = UInt(8 * bytes);
    const Expr low = cast(element, cast<uint32_t>(*sizes_[at]));
    if (bytes < 8) return low;
    return low | (cast(element, cast<uint32_t>(*sizes_[at + 1])) << 32);
  }
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::Gather, gather)
HALIDE_REGISTER_GENERATOR(ballast::kernels::GatherRows, gather_rows)
HALIDE_REGISTER_GENERATOR(ballast::kernels::GatherLanes, gather_lanes)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ScatterAdd, scatter_add_rows)
HALIDE_REGISTER_GENERATOR(ballast::kernels::OneHot, one_hot_rows)
