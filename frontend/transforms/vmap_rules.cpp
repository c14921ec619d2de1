#include "frontend/transforms/vmap_rules.h"

#include "frontend/ops/ops.h"
#include "frontend/program/token.h"
#include "frontend/program/trace.h"

#include <algorithm>
#include <numeric>

namespace ballast::vmap_rules {

namespace {

Shape joined(int64_t size, const Shape& shape) {
  Shape result{size};
  result.insert(result.end(), shape.begin(), shape.end());
  return result;
}

}  // namespace

Shape own_shape(const VmapArgs& args, size_t i) {
  const Shape& shape = args.inputs[i].shape();
  return args.is_mapped[i] ? Shape(shape.begin() + 1, shape.end()) : shape;
}

Tensor repeated(const Tensor& x, int64_t size) {
  return ops::broadcast_to(x, joined(size, x.shape()));
}

Tensor mapped(const VmapArgs& args, size_t i) {
  return args.is_mapped[i] ? args.inputs[i] : repeated(args.inputs[i], args.size);
}

Tensor aligned(const VmapArgs& args, size_t i, int64_t rank) {
  const Tensor& x = args.inputs[i];
  if (!args.is_mapped[i] || x.rank() - 1 >= rank) return x;
  Shape shape = x.shape();
  shape.insert(shape.begin() + 1, static_cast<size_t>(rank - (x.rank() - 1)), 1);
  return ops::reshape(x, shape);
}

Tensor merge(const Tensor& x) {
  Shape shape(x.shape().begin() + 1, x.shape().end());
  shape[0] *= x.shape()[0];
  return ops::reshape(x, shape);
}

Tensor unmerge(const Tensor& x, int64_t size) {
  Shape shape = joined(size, x.shape());
  shape[1] = size == 0 ? 0 : shape[1] / size;
  return ops::reshape(x, shape);
}

Tensor move_axis(const Tensor& x, int64_t from, int64_t to) {
  if (from == to) return x;
  std::vector<int64_t> perm(x.shape().size());
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + from);
  perm.insert(perm.begin() + to, from);
  return ops::transpose(x, perm);
}

Tensor merge_channels(const Tensor& x) {
  const Tensor moved = move_axis(x, 0, 1);
  Shape shape = moved.shape();
  shape[1] *= shape[2];
  shape.erase(shape.begin() + 2);
  return ops::reshape(moved, shape);
}

Tensor unmerge_channels(const Tensor& x, int64_t size) {
  Shape shape = x.shape();
  shape.insert(shape.begin() + 1, size);
  shape[2] = size == 0 ? 0 : shape[2] / size;
  return move_axis(ops::reshape(x, shape), 1, 0);
}

const AttrValue* find_attr(const Attrs& attrs, const std::string& name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}

int64_t int_attr_or(const Attrs& attrs, const std::string& name, int64_t otherwise) {
  const AttrValue* found = find_attr(attrs, name);
  return found ? std::get<int64_t>(*found) : otherwise;
}

Attrs with_attr(Attrs attrs, const std::string& name, AttrValue value) {
  for (auto& [key, old] : attrs) {
    if (key != name) continue;
    old = std::move(value);
    return attrs;
  }
  attrs.emplace_back(name, std::move(value));
  return attrs;
}

Tensors unroll(const VmapArgs& args) {
  std::vector<Tensors> stacked(args.outputs.size());
  Tensor token;  // effects of one example come after those of the one before it
  for (const Tensor& input : args.inputs) {
    if (is_token(input.type())) token = input;
  }
  for (int64_t example = 0; example < args.size; ++example) {
    Tensors inputs;
    for (size_t i = 0; i < args.inputs.size(); ++i) {
      const Tensor& x = args.inputs[i];
      if (!args.is_mapped[i]) {
        inputs.push_back(is_token(x.type()) ? token : x);
        continue;
      }
      Shape begin(x.shape().size(), 0), extents = x.shape();
      begin[0] = example;
      extents[0] = 1;
      inputs.push_back(ops::reshape(ops::slice(x, begin, extents), own_shape(args, i)));
    }
    const Tensors outputs =
        apply_primitive(args.primitive, inputs, args.attrs, Where::here(), args.bodies);
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (is_token(outputs[i].type())) token = outputs[i];
      stacked[i].push_back(outputs[i]);
    }
  }
  Tensors results;
  for (size_t i = 0; i < stacked.size(); ++i) {
    const TensorType& type = args.outputs[i];
    if (is_token(type)) {
      results.push_back(token);
      continue;
    }
    results.push_back(args.size == 0 ? Tensor::zeros(joined(0, type.shape), type.dtype)
                                     : ops::stack(stacked[i]));
  }
  return results;
}

Tensors pointwise(const VmapArgs& args) {
  int64_t rank = 0;
  for (size_t i = 0; i < args.inputs.size(); ++i) {
    rank = std::max(rank, static_cast<int64_t>(own_shape(args, i).size()));
  }
  Tensors inputs;
  for (size_t i = 0; i < args.inputs.size(); ++i) inputs.push_back(aligned(args, i, rank));
  return ops::call(args.primitive, inputs, args.attrs);
}

namespace {

Tensors all_mapped(const VmapArgs& args) {
  Tensors inputs;
  for (size_t i = 0; i < args.inputs.size(); ++i) inputs.push_back(mapped(args, i));
  return inputs;
}

Tensors along_axis(const VmapArgs& args, int64_t axis) {
  return ops::call(args.primitive, all_mapped(args),
                   with_attr(args.attrs, "axis", axis < 0 ? axis : axis + 1));
}

}  // namespace

Tensors along(const VmapArgs& args) {
  return along_axis(args, int_attr_or(args.attrs, "axis", -1));
}

Tensors along_first(const VmapArgs& args) {
  return along_axis(args, int_attr_or(args.attrs, "axis", 0));
}

Tensors samples(const VmapArgs& args) {
  Tensors inputs = all_mapped(args);
  for (Tensor& input : inputs) input = merge(input);
  Attrs attrs = args.attrs;
  if (const AttrValue* size = find_attr(attrs, "input_size")) {
    std::vector<int64_t> all = std::get<std::vector<int64_t>>(*size);
    all[0] *= args.size;
    attrs = with_attr(attrs, "input_size", all);
  }
  Tensors outputs = ops::call(args.primitive, inputs, attrs);
  for (Tensor& output : outputs) output = unmerge(output, args.size);
  return outputs;
}

Tensors channels(const VmapArgs& args) {
  Tensors inputs = all_mapped(args);
  for (Tensor& input : inputs) input = input.rank() > 2 ? merge_channels(input) : merge(input);
  Attrs attrs = args.attrs;
  if (const AttrValue* groups = find_attr(attrs, "num_groups")) {
    attrs = with_attr(attrs, "num_groups", std::get<int64_t>(*groups) * args.size);
  }
  Tensors outputs = ops::call(args.primitive, inputs, attrs);
  for (Tensor& output : outputs) {
    output = output.rank() > 1 ? unmerge_channels(output, args.size) : unmerge(output, args.size);
  }
  return outputs;
}

}  // namespace ballast::vmap_rules
