#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

namespace {

void apply_momentum(const std::vector<HostArray>& inputs, const Attrs& attrs,
                    std::vector<HostArray>& outputs) {
  double lr = inputs[3].values[0];
  double momentum = inputs[4].values[0];
  for (size_t i = 0; i < inputs[0].values.size(); ++i) {
    double grad = inputs[2].values[i];
    double accum = momentum * inputs[1].values[i] + grad;
    double step = int_attr(attrs, "use_nesterov") != 0 ? grad + momentum * accum : accum;
    outputs[0].values[i] = inputs[0].values[i] - lr * step;
    outputs[1].values[i] = accum;
  }
}

void add_optimizer_steps(OpFamilies& table) {
  for (const Shape& shape : std::vector<Shape>{{3, 4}, {}, {1029}, {0}}) {
    bool is_small = shape.size() != 1;
    table.add("apply_gradient_descent", {real(shape, -1, 1), real(shape, -1, 1), scalar(0.1)}, {},
              is_small);
    for (int64_t nesterov : {0, 1}) {
      table.add(
          "apply_momentum",
          {real(shape, -1, 1), real(shape, -1, 1), real(shape, -1, 1), scalar(0.1), scalar(0.9)},
          {{"use_nesterov", nesterov}}, is_small);
    }
  }
}
}  // namespace

void add_optimizer(OpFamilies& table) {
  table.references.insert({
      {"apply_gradient_descent", pointwise([](const Elements& e) { return e[0] - e[2] * e[1]; })},
      {"apply_momentum", apply_momentum},
  });
  add_optimizer_steps(table);
}

}  // namespace ballast::tests
