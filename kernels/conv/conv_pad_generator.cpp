// Planes with zeros around and between their elements; and of what strides laid apart, sums, and
// phases in order.
#include "kernels/conv/conv_recipe.h"
#include "kernels/recipe/shuffle.h"

#include <string>

namespace ballast::kernels {
namespace {

using namespace Halide;

// padded(x, y, plane): the source with zeros around it, and stride - 1 zeros between its elements.
class ConvPad : public Generator<ConvPad> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> top{"top"}, left{"left"}, stride_h{"stride_h"}, stride_w{"stride_w"},
      planes_per_group{"planes_per_group"};
  Input<Buffer<float, 3>> source{"source"};
  Output<Buffer<float, 3>> padded{"padded"};

  void generate() {
    const Expr width = source.dim(0).extent(), height = source.dim(1).extent();
    const Expr sx = x - left, sy = y - top;
    const Expr is_row = sy >= 0 && sy < height * stride_h && sy % stride_h == 0;
    const Expr is_inside = likely(sx >= 0) && likely(sx < width * stride_w);
    const Expr is_hit = is_row && is_inside && sx % stride_w == 0;
    padded(x, y, p) = select(
        is_hit,
        source(clamp(likely(sx / stride_w), 0, width - 1), clamp(sy / stride_h, 0, height - 1), p),
        0.0f);
  }

  void schedule() {
    set_mins(source, padded);
    Var po("po"), pi("pi");
    Func func = padded;
    func.split(p, po, pi, planes_per_group, TailStrategy::GuardWithIf)
        .reorder(x, y, pi, po)
        .gpu_blocks(po);
    func.specialize(stride_h == 1 && stride_w == 1);
  }

 private:
  Var x{"x"}, y{"y"}, p{"p"};
};

// dx from the products of dy with every tap of the weights: each element adds the products of the
// windows that hold it. x = xq stride + xr, and y likewise.
class ConvGather : public Generator<ConvGather> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  Input<int> top{"top"}, left{"left"}, stride_h{"stride_h"}, stride_w{"stride_w"}, hits_h{"hits_h"},
      hits_w{"hits_w"};
  Input<Buffer<float, 5>> products{"products"};  // (ox, oy, kx, ky, plane)
  Output<Buffer<float, 5>> dx{"dx"};             // (xq, xr, yq, yr, plane)

  void generate() {
    hits = RDom(0, hits_w, 0, hits_h, "hits");
    const Expr ox = xq + (xr + left) / stride_w - hits.x,
               kx = (xr + left) % stride_w + hits.x * stride_w;
    const Expr oy = yq + (yr + top) / stride_h - hits.y,
               ky = (yr + top) % stride_h + hits.y * stride_h;
    const Expr windows_w = products.dim(0).extent(), windows_h = products.dim(1).extent(),
               taps_w = products.dim(2).extent(), taps_h = products.dim(3).extent();
    for (const Expr& condition :
         {kx < taps_w, ky < taps_h, oy >= 0, oy < windows_h, ox >= 0, ox < windows_w}) {
      hits.where(condition);
    }
    total(xq, xr, yq, yr, p) = 0.0f;
    total(xq, xr, yq, yr, p) = strict_float(total(xq, xr, yq, yr, p) + products(ox, oy, kx, ky, p));
    dx(xq, xr, yq, yr, p) = total(xq, xr, yq, yr, p);
  }

  void schedule() {
    set_mins(products, dx);
    Func(dx).output_buffer().dim(0).set_stride(Expr());
    // A hit at a time over up to 64 neighbours: a plain sum of two rows.
    constexpr int kRow = 64;
    // Of a work-group; single rows took 1.07 times as long.
    constexpr int kRows = 16;
    Var xo("xo"), xi("xi"), yo("yo");
    Func(dx)
        .split(xq, xo, xi, kRow, TailStrategy::GuardWithIf)
        .split(yq, yo, yq, kRows, TailStrategy::GuardWithIf)
        .reorder(xi, xr, xo, yr, yq, yo, p)
        .gpu_blocks(yo, p)
        .never_partition_all();
    total.compute_at(dx, xr).store_in(MemoryType::Stack).bound_storage(xq, kRow);
    total.update().reorder(xq, hits.x, hits.y, xr, yq, yr, p);
  }

 private:
  Var xq{"xq"}, xr{"xr"}, yq{"yq"}, yr{"yr"}, p{"p"};
  Func total{"total"};
  RDom hits;
};

// dx from its phases, of which rows have two: even and odd columns are laid in order by two
// shuffles. `spreads`: of the first phase alone, where the others are zero.
class ConvWeave : public Generator<ConvWeave> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> lanes{"lanes", 16};
  GeneratorParam<bool> spreads{"spreads", false};
  Input<int> planes_per_group{"planes_per_group"};
  Input<Buffer<float, 5>> phases{"phases"};  // (x / 2, yq, x % 2, yr, plane)
  Output<Buffer<float, 4>> dx{"dx"};         // (x, yr, yq, plane), y = yq stride + yr

  void generate() {
    const Expr across = phases.dim(0).extent();
    const int count = lanes;
    part = RDom(0, count, 0, 2, 0, (across + count - 1) / count, "part");
    const Expr first = min(part.z * count, across - count);  // the last vectors move inwards
    const auto phase = [&](int which) {
      return phases(first + part.x, yq, which, spreads ? Expr(0) : yr, p);
    };
    const Expr even = phase(0), odd = spreads ? Expr(0.0f) : phase(1);
    const auto half = [&](int begin) { return weave_lanes(even, odd, count, begin); };
    const Expr woven = select(part.y == 0, half(0), half(count / 2));
    dx(x, yr, yq, p) = undef<float>();
    dx(2 * first + part.y * count + part.x, yr, yq, p) =
        spreads ? select(yr == 0, woven, 0.0f) : woven;
  }

  void schedule() {
    set_mins(phases, dx);
    Var po("po");
    Stage weave = Func(dx).update();
    weave.allow_race_conditions();
    weave.split(p, po, p, planes_per_group, TailStrategy::GuardWithIf)
        .reorder({part.x, part.y, part.z, yr, yq, p, po})
        .vectorize(part.x)
        .unroll(part.y)
        .gpu_blocks(po)
        .never_partition_all();
  }

 private:
  Var x{"x"}, yr{"yr"}, yq{"yq"}, p{"p"};
  RDom part;
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvPad, conv_pad)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvGather, conv_gather)
HALIDE_REGISTER_GENERATOR(ballast::kernels::ConvWeave, conv_weave)
