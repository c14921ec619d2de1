// The op registry: everything the plugin knows about an op, under its name.
//
// One OpDef per op, made by graph/ops/<family>.cpp. Eager calls, shape inference and graphs all go
// through it. The registry is built once at first use and never changes (any thread may read).
#pragma once

#include "graph/attrs.h"
#include "kernels/kernels.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ballast::graph {

using kernels::DType;
using kernels::name_of;
using kernels::Plan;
using kernels::Shape;
using kernels::TensorType;
using kernels::to_string;

struct AttrSpec {
  std::string name;
  AttrValue example;         // fixes the kind
  bool is_required = false;  // else `example` is the default
};

struct OpDef;
class Graph;
// What control flow runs: graphs of inputs and outputs, without states.
using Regions = std::vector<std::shared_ptr<const Graph>>;

// An op applied to types: what inference and planning see. Attributes are normalised.
struct OpCall {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::vector<TensorType> inputs;
  Regions regions;
};

struct OpDef {
  std::string name;
  size_t min_inputs = 1;
  size_t max_inputs = 1;
  // Not 0: control flow (graph/control.h), which graphs alone can run; such an op has no plan and
  // is not in the listing for callers.
  size_t region_count = 0;
  std::vector<AttrSpec> attrs;
  // Output types; throws kInvalidArgument (the caller's types do not fit) or kUnimplemented.
  std::function<std::vector<TensorType>(const OpCall&)> infer;
  // The launches; slots as in kernels/plan/plan.h. `outputs` is what infer gave.
  std::function<Plan(kernels::DeviceClass, const OpCall&, const std::vector<TensorType>& outputs)>
      plan;
  // (output, input) pairs that may share memory when the input's type equals the output's.
  std::vector<std::pair<size_t, size_t>> in_place;
  // The output is the input's memory under another shape: graphs launch nothing for it.
  bool is_alias = false;
  // Float operands that stay f32 when the others are bf16 or f16 (make_plan says how such a call
  // runs): inputs that may be f32 beside narrow ones, outputs that always are.
  std::vector<size_t> f32_inputs, f32_outputs;
  // A row of kernels/pointwise/pointwise_ops.inc: may join a fused chain.
  bool is_pointwise = false;
  // Made by passes only: not in the listing for callers.
  bool is_internal = false;
  // Set: the op does something (graph/effect.h). It has no plan; this runs on the host, at the op's
  // place among the others, with the inputs' bytes. Its outputs are tokens.
  std::function<void(const OpCall&, const std::vector<std::vector<uint8_t>>& inputs)> effect;

  // Checks names and kinds, fills defaults.
  Attrs normalise(Attrs given) const;
};

// nullptr if unknown.
const OpDef* find_op(const std::string& name);
// Sorted by name; without internal ops, effects and control flow.
const std::vector<const OpDef*>& list_ops();

// Finds the op (kNotFound names near misses), checks the attributes and the numbers of inputs and
// regions.
OpCall make_call(const std::string& name, Attrs attrs, std::vector<TensorType> inputs,
                 Regions regions = {});
// What the op infers, with its name and inputs put before the message of what it throws.
//
// An op whose own rule refuses bf16 or f16 takes them nevertheless where it takes f32: its float
// inputs (but those in f32_inputs) have one dtype, and its float outputs (but those in f32_outputs)
// get it.
std::vector<TensorType> infer(const OpCall& call);
// The op's launches; where infer had to put f32 for a narrow type, those for f32 between casts.
Plan make_plan(kernels::DeviceClass device_class, const OpCall& call,
               const std::vector<TensorType>& outputs);

// Throws kInvalidArgument for a negative extent or a size in bytes beyond 2^62.
void check_size(const TensorType& type);

// Throws kInvalidArgument for a number that an integer type cannot hold; fractions are cut off.
void check_fits(double value, DType dtype);

// numpy's broadcasting of two shapes; throws kInvalidArgument.
Shape broadcast(const Shape& a, const Shape& b);

// What each family file contributes.
std::vector<OpDef> pointwise_ops();
std::vector<OpDef> shape_ops();
std::vector<OpDef> index_ops();
std::vector<OpDef> reduce_ops();
std::vector<OpDef> matmul_ops();
std::vector<OpDef> conv_ops();
std::vector<OpDef> pool_ops();
std::vector<OpDef> norm_ops();
std::vector<OpDef> softmax_ops();
std::vector<OpDef> attention_ops();
std::vector<OpDef> random_ops();
std::vector<OpDef> optimizer_ops();
std::vector<OpDef> fused_ops();
std::vector<OpDef> control_flow_ops();
std::vector<OpDef> print_ops();

}  // namespace ballast::graph
