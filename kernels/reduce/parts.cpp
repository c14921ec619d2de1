#include "kernels/reduce/parts.h"

#include "kernels/plan/plan_builder.h"
#include "kernels/reduce/reduce.h"

namespace ballast::kernels {

Plan plan_sum_of_parts(DeviceClass device_class, const Plan& of_parts, int64_t parts,
                       int64_t results) {
  if (parts == 1) return of_parts;
  PlanBuilder builder(3);
  const uint32_t apart = builder.add_floats(parts * results);
  builder.append(of_parts, {0, 1, apart});
  builder.append(plan_reduce(device_class, "sum", {DType::kF32, {parts, results}}, {0},
                             {DType::kF32, {results}}),
                 {apart, 2});
  return builder.finish();
}

}  // namespace ballast::kernels
