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

double broadcast_value(const HostArray& array, const Index& index) {
  const Shape& shape = array.type.shape;
  Index own(index.end() - static_cast<std::ptrdiff_t>(shape.size()), index.end());
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) own[axis] = 0;
  }
  return array.values[flat_of(own, shape)];
}

ReferenceOp pointwise(std::function<double(const Elements&)> function) {
  return [function](const std::vector<HostArray>& inputs, const Attrs&,
                    std::vector<HostArray>& outputs) {
    HostArray& out = outputs[0];
    for (size_t i = 0; i < out.values.size(); ++i) {
      Index index = index_of(i, out.type.shape);
      Elements elements;
      for (const HostArray& input : inputs) elements.push_back(broadcast_value(input, index));
      out.values[i] = function(elements);
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
