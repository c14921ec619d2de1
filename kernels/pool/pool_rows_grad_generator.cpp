// Gradients of poolings by rows on CPUs:
//
//   cells  what each window gives: its share of an average, or dy and the index of its winner. They
//          lie as far apart along a row as windows do, and what is between and around them gives
//          nothing: so a vector of dx takes one vector per tap
//   dx     the taps of the rows of windows that hold a row
//
// Cells are on the stack, a whole plane: a vector that lies across two that were just stored waits
// for both.
#include "kernels/pointwise/pointwise_math.h"
#include "kernels/pool/pool_recipe.h"
#include "kernels/recipe/layout.h"

namespace ballast::kernels {
namespace {

using namespace Halide;

class PoolRowsGrad : public AveragingGenerator<PoolRowsGrad> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> is_max{"is_max", true};
  GeneratorParam<int> lanes{"lanes", 16};

  // Rows of cells are `pitch` elements apart, a multiple of `lanes`.
  Input<int> kernel_h{"kernel_h"}, kernel_w{"kernel_w"}, stride_h{"stride_h"}, stride_w{"stride_w"},
      top{"top"}, left{"left"}, dilation_h{"dilation_h"}, dilation_w{"dilation_w"}, pitch{"pitch"},
      planes_per_group{"planes_per_group"};

  void configure() {
    if (!is_max) add_counts();
    dy_ = add_input<Buffer<float>>("dy", 3);
    if (is_max) index_ = add_input<Buffer<int32_t>>("index", 3);
    dx_ = add_output<Buffer<float>>("dx", 3);
  }

  void generate() {
    const Expr width = dx_->dim(0).extent(), height = dx_->dim(1).extent();
    fill_cells(width, height);
    taps = RDom(0, kernel_w, 0, kernel_h, "taps");
    const Expr padded = y + top - taps.y * dilation_h, row = padded / stride_h;
    taps.where(padded >= 0 && padded % stride_h == 0 && row < dy_->dim(1).extent());
    const FuncRef cell =
        cells(cell_at(row * pitch + (x + left + (kernel_w - 1 - taps.x) * dilation_w)), p);
    total(x, y, p) = 0.0f;
    const Expr old = total(x, y, p);
    total(x, y, p) = is_max ? select(cell[1] == y * width + x, strict_float(old + cell[0]), old)
                            : strict_float(old + cell);
    (*dx_)(x, y, p) = total(x, y, p);
  }

  void schedule() {
    set_mins(*dy_, *dx_);
    if (is_max) set_mins(*index_);
    const Var xo("xo"), plane_group("plane_group");
    Func(*dx_)
        .split(p, plane_group, p, planes_per_group, TailStrategy::GuardWithIf)
        .split(x, xo, x, lanes, TailStrategy::ShiftInwards)
        .reorder(x, xo, y, p, plane_group)
        .gpu_blocks(plane_group)
        .never_partition_all()
        .vectorize(x);
    total.compute_at(*dx_, xo).store_in(MemoryType::Register);
    total.vectorize(x, lanes, TailStrategy::RoundUp);
    total.update().never_partition_all().reorder(x, taps.x, taps.y);
    total.update().vectorize(x, lanes, TailStrategy::RoundUp);
    cells.compute_at(*dx_, p).store_in(MemoryType::Stack).never_partition_all();
    cells.update(0).allow_race_conditions().vectorize(none.x);
    cells.update(1).allow_race_conditions();
  }

 private:
  static Expr cell_at(const Expr& place) {
    return unsafe_promise_clamped(place, 0, kPoolCells - 1);
  }
  Tuple cell_of(const Expr& value, const Expr& index) const {
    return is_max ? Tuple(value, index) : Tuple(value);
  }

  void fill_cells(const Expr& width, const Expr& height) {
    const Expr windows = dy_->dim(0).extent(), rows = dy_->dim(1).extent();
    none = RDom(0, lanes, 0, rows * (pitch / lanes), "none");
    window = RDom(0, windows, 0, rows, "window");
    cells(x, p) = cell_of(undef<float>(), undef<int>());
    cells(cell_at(none.y * lanes + none.x), p) = cell_of(0.0f, -1);
    const Expr given = (*dy_)(window.x, window.y, p);
    const Expr place = window.y * pitch + (kernel_w - 1) * dilation_w + window.x * stride_w;
    if (is_max) {
      cells(cell_at(place), p) = Tuple(given, (*index_)(window.x, window.y, p));
    } else {
      cells(cell_at(place), p) =
          average(given, window.x * stride_w - left, window.y * stride_h - top, kernel_w, kernel_h,
                  width, height);
    }
  }

  Var x{"x"}, y{"y"}, p{"p"};
  GeneratorInput<Buffer<float>>* dy_ = nullptr;
  GeneratorInput<Buffer<int32_t>>* index_ = nullptr;
  GeneratorOutput<Buffer<float>>* dx_ = nullptr;
  Func cells{"cells"}, total{"total"};
  RDom none, window, taps;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::PoolRowsGrad, pool_rows_grad)
