#include "tests/reference_ops.h"

#include "tests/op_table.h"

namespace ballast::tests {

Index index_of(size_t flat, const Shape& shape) {
  Index index(shape.size());
  auto rest = static_cast<int64_t>(flat);
  for (size_t axis = shape.size(); axis-- > 0;) {
    index[axis] = rest % shape[axis];
    rest /= shape[axis];
  }
  return index;
}

size_t flat_of(const Index& index, const Shape& shape) {
  int64_t flat = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) flat = flat * shape[axis] + index[axis];
  return static_cast<size_t>(flat);
}

void advance(Index& index, const Shape& shape) {
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (++index[axis] < shape[axis]) return;
    index[axis] = 0;
  }
}

double broadcast_value(const HostArray& array, const Index& index) {
  const Shape& shape = array.type.shape;
  const size_t lead = index.size() - shape.size();
  int64_t flat = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    flat = flat * shape[axis] + (shape[axis] == 1 ? 0 : index[lead + axis]);
  }
  return array.values[static_cast<size_t>(flat)];
}

ReferenceOp pointwise(std::function<double(const Elements&)> function) {
  return [function](const std::vector<HostArray>& inputs, const Attrs&,
                    std::vector<HostArray>& outputs) {
    const Shape& shape = outputs[0].type.shape;
    Index index(shape.size());
    Elements elements(inputs.size());
    for (double& value : outputs[0].values) {
      for (size_t i = 0; i < inputs.size(); ++i) elements[i] = broadcast_value(inputs[i], index);
      value = function(elements);
      advance(index, shape);
    }
  };
}

TypeRule like(std::vector<size_t> inputs) {
  return [inputs](const Types& in, const Attrs&) {
    Types results;
    for (size_t input : inputs) results.push_back(in[input]);
    return results;
  };
}

TypeRule of_shape(const std::string& name, size_t input) {
  return [=](const Types& in, const Attrs& attrs) {
    return Types{{in[input].dtype, ints_attr(attrs, name)}};
  };
}

Shape broadcast_shape(const Types& inputs) {
  Shape result;
  for (const TensorType& input : inputs) {
    if (input.shape.size() > result.size()) {
      result.insert(result.begin(), input.shape.size() - result.size(), 1);
    }
    const size_t lead = result.size() - input.shape.size();
    for (size_t axis = 0; axis < input.shape.size(); ++axis) {
      if (input.shape[axis] != 1) result[lead + axis] = input.shape[axis];
    }
  }
  return result;
}

const std::map<std::string, ReferenceOp>& reference_ops() { return op_families().references; }

}  // namespace ballast::tests
