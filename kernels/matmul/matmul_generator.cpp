// C[M, N] = epilogue(A B) in f32, in three kernels, and the packing that one of them wants:
//
//   matmul_tiles    CPUs: one work-item computes register tiles of rows x lanes. A is only read as
//                   broadcast scalars, so its strides are free; B comes in vectors of 16 lanes.
//   matmul_general  any strides; for GPUs, and on CPUs for products too small to be worth packing.
//   matmul_pack     puts B (or A transposed, in the other's role) into panels for matmul_tiles.
//
// An element is always the fma chain over k from 0 upwards, started at +0, whatever the kernel, the
// epilogue or the tile: equal products are equal bit for bit. fma is spelled out because PoCL
// contracts nothing by itself: with mul + add it reached half the rate on the same tile.
#include "kernels/pointwise/pointwise_math.h"

#include <string>
#include <vector>

namespace ballast::kernels {
namespace {

using namespace Halide;

constexpr int kLanes = 16;

Expr fused_multiply_add(const Expr& a, const Expr& b, const Expr& c) {
  return Internal::Call::make(Float(32), "fma", {a, b, c}, Internal::Call::PureExtern);
}

// ...[vector][lane], or ...[lane] alone: 16 contiguous lanes, then 16 apart.
template <class Tensor>
void set_vector_layout(Tensor& tensor) {
  for (int d = 1; d < tensor.dimensions(); ++d) tensor.dim(d).set_min(0);
  tensor.dim(0).set_bounds(0, kLanes).set_stride(1);
  tensor.dim(1).set_stride(kLanes);
}

template <class Tensor>
void set_any_layout(Tensor& tensor) {
  for (int d = 0; d < tensor.dimensions(); ++d) tensor.dim(d).set_min(0);
  tensor.dim(0).set_stride(Expr());
}

// What both matmul generators share: the parameters of the epilogue and its inputs.
template <class Derived>
class WithEpilogue : public Generator<Derived> {
 public:
  GeneratorParam<bool> has_bias{"has_bias", false};
  GeneratorParam<std::string> activation{"activation", "none"};

 protected:
  using BufferInput = GeneratorInput<Buffer<float>>;

  void add_epilogue_inputs(int dimensions) {
    if (has_bias) bias_ = this->template add_input<Buffer<float>>("bias", dimensions);
    if (activation.value() == "relu_grad") {
      y_ = this->template add_input<Buffer<float>>("y", dimensions);
    }
  }

  // The conditions are those of the pointwise ops, so that fused equals unfused. They are opaque:
  // of a plain select Halide would make a max, which swallows NaN.
  Expr epilogue(Expr value, const std::vector<Expr>& at) {
    if (bias_ != nullptr) value = value + (*bias_)(at);
    if (activation.value() == "relu") value = select(le(value, 0.0f), 0.0f, value);
    if (y_ != nullptr) value = select(lt(0.0f, (*y_)(at)), value, 0.0f);
    return value;
  }

  void set_epilogue_layout(bool is_vector) {
    for (BufferInput* input : {bias_, y_}) {
      if (input == nullptr) continue;
      is_vector ? set_vector_layout(*input) : set_any_layout(*input);
    }
  }

 private:
  BufferInput* bias_ = nullptr;
  BufferInput* y_ = nullptr;
};

// B is [panel][k][vector][lane]: rows of a dense matrix (k stride = its width) or packed panels.
// dense_store: the output is [row][vector][lane], lanes contiguous and a multiple of 16 in number;
// otherwise it is [row][lane] with any strides, which also stores a product computed transposed.
class MatmulTiles : public WithEpilogue<MatmulTiles> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<int> rows{"rows", 6};
  GeneratorParam<int> vectors{"vectors", 4};
  GeneratorParam<bool> dense_store{"dense_store", true};

  Input<Buffer<float, 2>> a{"a"};  // [row][k]
  Input<Buffer<float, 4>> b{"b"};
  Input<int> lane_vectors{"lane_vectors"};        // vectors of B that exist
  Input<int> tiles_per_group{"tiles_per_group"};  // row tiles of a work-group

  void configure() {
    add_epilogue_inputs(dense_store ? 3 : 2);
    out_ = add_output<Buffer<float>>("out", dense_store ? 3 : 2);
  }

  void generate() {
    // Algorithm. Rows and vectors beyond the edge of a tile repeat the last one and are not stored.
    RDom k(0, a.dim(0).extent(), "k");
    Expr panel = v / vectors;
    Expr vector = min(v % vectors, lane_vectors - 1 - panel * vectors);
    product_(l, v, y) = 0.0f;
    product_(l, v, y) = fused_multiply_add(a(k, min(y, a.dim(1).extent() - 1)),
                                           b(l, vector, k, panel), product_(l, v, y));
    set_any_layout(a);
    set_vector_layout(b);
    if (dense_store) {
      store_vectors();
    } else {
      store_elements();
    }

    // Schedule: the accumulators of a tile stay in registers over the whole of k.
    product_.store_in(MemoryType::Register).bound_extent(v, vectors).bound_extent(y, rows);
    product_.vectorize(l).unroll(v).unroll(y);
    product_.update().reorder(l, v, y, k).vectorize(l).unroll(v).unroll(y);
  }

 private:
  Var l{"l"}, v{"v"}, x{"x"}, y{"y"}, xo{"xo"}, xi{"xi"}, yo{"yo"}, yi{"yi"}, group{"group"},
      tile{"tile"};
  Func product_{"product"}, staged_{"staged"};
  GeneratorOutput<Buffer<float>>* out_ = nullptr;

  // Measured on this schedule compiled at run time (2 cores Zen 5, PoCL 3.1, Nov 2026; % of the FMA
  // peak of the same seconds): 1024^3 with B packed 96 (plain rows of 4 KiB alias in the caches:
  // 81, hence the rule in matmul.cpp); 8 x 48 tile on 64x784x512 84, on 512x784x64 transposed 82.
  void store_vectors() {
    Func out = *out_;
    out(l, v, y) = epilogue(product_(l, v, y), {l, v, y});
    set_epilogue_layout(true);
    set_vector_layout(*out_);
    split_rows(out);
    out.split(v, xo, xi, vectors, TailStrategy::GuardWithIf)
        .reorder(l, xi, yi, tile, group, xo)
        .gpu_blocks(group, xo)
        .vectorize(l)
        .unroll(xi)
        .unroll(yi);
    product_.compute_at(out, tile);
  }

  // The tile goes through the stack so that the accumulators, indexed by constants only, can be
  // registers. Measured as above: 64x512x784 as the transpose of 512x64x784, packing included, 79.
  void store_elements() {
    Func out = *out_;
    staged_(l, v, y) = product_(l, v, y);
    out(x, y) = epilogue(staged_(x % kLanes, x / kLanes, y), {x, y});
    set_epilogue_layout(false);
    set_any_layout(*out_);
    split_rows(out);
    out.split(x, xo, xi, vectors * kLanes, TailStrategy::GuardWithIf)
        .reorder(yi, xi, tile, group, xo)
        .gpu_blocks(group, xo);
    staged_.compute_at(out, tile)
        .store_in(MemoryType::Stack)
        .bound_extent(v, vectors)
        .bound_extent(y, rows)
        .vectorize(l)
        .unroll(v)
        .unroll(y);
    product_.compute_at(staged_, Var::outermost());
  }

  void split_rows(Func out) {
    out.split(y, yo, yi, rows, TailStrategy::GuardWithIf)
        .split(yo, group, tile, tiles_per_group, TailStrategy::GuardWithIf);
    out.never_partition(group, tile);  // copies of a tile cost compile time; rows clamp for nothing
  }
};

class MatmulGeneral : public WithEpilogue<MatmulGeneral> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<float, 2>> a{"a"};  // [row][k]
  Input<Buffer<float, 2>> b{"b"};  // [k][x]

  void configure() {
    add_epilogue_inputs(2);
    out_ = add_output<Buffer<float>>("out", 2);
  }

  void generate() {
    // Algorithm.
    k_ = RDom(0, a.dim(0).extent(), "k");
    product_(x, y) = 0.0f;
    product_(x, y) = fused_multiply_add(a(k_, min(y, a.dim(1).extent() - 1)),
                                        b(min(x, b.dim(0).extent() - 1), k_), product_(x, y));
    Func out = *out_;
    out(x, y) = epilogue(product_(x, y), {x, y});
    set_epilogue_layout(false);
    set_any_layout(a);
    set_any_layout(b);
    set_any_layout(*out_);

    // Schedule.
    if (device_class.value() == "gpu") {
      schedule_gpu(out);
    } else {
      schedule_cpu(out);
    }
  }

 private:
  Var x{"x"}, y{"y"}, xo{"xo"}, xi{"xi"}, yo{"yo"}, yi{"yi"};
  RDom k_;
  Func product_{"product"};
  GeneratorOutput<Buffer<float>>* out_ = nullptr;

  // 16 x 16 work-items of 4 x 4 elements each.
  void schedule_gpu(Func out) {
    constexpr int kThreads = 16, kElements = 4, kBlock = kThreads * kElements;
    Var xt("xt"), yt("yt");
    out.tile(x, y, xo, yo, xi, yi, kBlock, kBlock, TailStrategy::GuardWithIf)
        .tile(xi, yi, xt, yt, xi, yi, kElements, kElements)
        .gpu_blocks(xo, yo)
        .gpu_threads(xt, yt)
        .unroll(xi)
        .unroll(yi);
    product_.compute_at(out, xt).store_in(MemoryType::Register);
    product_.bound_extent(x, kElements).bound_extent(y, kElements).unroll(x).unroll(y);
    product_.update().reorder(x, y, k_).unroll(x).unroll(y);
    out.never_partition_all();
  }

  // One work-item per 4 x 16 tile, staged as in MatmulTiles. Lanes of B may lie anywhere, so each
  // vector is gathered.
  void schedule_cpu(Func out) {
    constexpr int kRows = 4;
    Func staged = product_.in(out);
    out.tile(x, y, xo, yo, xi, yi, kLanes, kRows, TailStrategy::GuardWithIf).gpu_blocks(xo, yo);
    staged.compute_at(out, xo).store_in(MemoryType::Stack);
    product_.compute_at(staged, Var::outermost()).store_in(MemoryType::Register);
    for (Func f : {staged, product_}) {
      f.bound_extent(x, kLanes).bound_extent(y, kRows).vectorize(x).unroll(y);
    }
    product_.update().reorder(x, y, k_).vectorize(x).unroll(y);
    out.never_partition_all();
  }
};

// panels[panel][k][vector][lane] of the matrix source[k][lane], element by element, or by vectors
// where the lanes are contiguous and a multiple of 16. Lanes past the edge repeat the last ones:
// what they hold is multiplied but never stored, so it only has to be there.
class MatmulPack : public Generator<MatmulPack> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};
  GeneratorParam<bool> by_vectors{"by_vectors", false};

  Input<Buffer<float, 2>> source{"source"};
  Input<int> panel_vectors{"panel_vectors"};
  Output<Buffer<float, 4>> panels{"panels"};

  void generate() {
    // Algorithm.
    Expr lanes = source.dim(0).extent(), vector = p * panel_vectors + v;
    if (by_vectors) {
      panels(l, v, k, p) = source(min(vector, lanes / kLanes - 1) * kLanes + l, k);
    } else {
      panels(l, v, k, p) = source(min(vector * kLanes + l, lanes - 1), k);
    }
    set_any_layout(source);
    set_vector_layout(panels);
    if (by_vectors) source.dim(0).set_stride(1);

    // Schedule: a work-item packs 32 rows of a panel. 1024 x 1024 measured as above: 134 us by
    // vectors, 315 us by elements.
    panels.split(k, ko, ki, 32, TailStrategy::GuardWithIf).gpu_blocks(ko, p).never_partition_all();
    if (by_vectors) {
      panels.reorder(l, v, ki, ko, p).vectorize(l);
    } else {
      panels.reorder(l, ki, v, ko, p).unroll(l);
    }
  }

 private:
  Var l{"l"}, v{"v"}, k{"k"}, p{"p"}, ko{"ko"}, ki{"ki"};
};

// The same for a source contiguous along k, a multiple of 16: panels[panel][k / 16][k % 16]...
class MatmulPackColumns : public Generator<MatmulPackColumns> {
 public:
  GeneratorParam<std::string> device_class{"device_class", "cpu"};

  Input<Buffer<float, 2>> source{"source"};
  Input<int> panel_vectors{"panel_vectors"};
  Output<Buffer<float, 5>> panels{"panels"};

  void generate() {
    // Algorithm: a 16 x 16 block is transposed by four perfect shuffles of its 256 elements, each a
    // rotation of the element's 8-bit place by one; a result vector takes from two vectors only.
    Expr lanes = source.dim(0).extent();
    Func block("block");
    block(l, r, v, kb, p) =
        source(min((p * panel_vectors + v) * kLanes + r, lanes - 1), kb * kLanes + l);
    std::vector<Func> steps{block};
    for (int i = 0; i < 4; ++i) {
      Func step("shuffle" + std::to_string(i));
      step(l, r, v, kb, p) = steps.back()((r % 2) * 8 + l / 2, r / 2 + (l % 2) * 8, v, kb, p);
      steps.push_back(step);
    }
    panels(l, r, v, kb, p) = steps.back()(l, r, v, kb, p);
    source.dim(0).set_min(0).set_stride(Expr());
    source.dim(1).set_min(0).set_stride(1);
    panels.dim(0).set_bounds(0, kLanes);
    panels.dim(1).set_bounds(0, kLanes);
    for (int d = 2; d < 5; ++d) panels.dim(d).set_min(0);

    // Schedule: a work-item packs 32 rows of a panel. 64 x 784 measured as above: 11 us, 17 us
    // element by element.
    panels.split(kb, ko, ki, 2, TailStrategy::GuardWithIf)
        .reorder(l, r, v, ki, ko, p)
        .gpu_blocks(ko, p)
        .vectorize(l)
        .unroll(r)
        .never_partition_all();
    for (Func step : steps) {
      step.compute_at(panels, v).store_in(MemoryType::Register);
      step.bound_extent(l, kLanes).bound_extent(r, kLanes).vectorize(l).unroll(r);
    }
  }

 private:
  Var l{"l"}, r{"r"}, v{"v"}, kb{"kb"}, p{"p"}, ko{"ko"}, ki{"ki"};
};

}  // namespace
}  // namespace ballast::kernels

HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulTiles, matmul_tiles)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulGeneral, matmul_general)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulPack, matmul_pack)
HALIDE_REGISTER_GENERATOR(ballast::kernels::MatmulPackColumns, matmul_pack_columns)
