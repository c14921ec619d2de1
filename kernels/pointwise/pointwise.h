// Pointwise ops (the rows of pointwise_ops.inc) and chains of them fused at run time.
#pragma once

#include "kernels/plan/plan.h"

#include <string>
#include <vector>

namespace ballast::kernels {

// Inputs broadcast to output.shape by numpy's rules. Safe in place: the output may be the buffer of
// an input of the same shape and element size.
Plan plan_pointwise(DeviceClass device_class, const std::string& op,
                    const std::vector<TensorType>& inputs, const TensorType& output);

// A chain of pointwise steps fused into one kernel, compiled at run time (fuse.cpp). Steps are in
// order; an argument names an input or an earlier step. Every step computes in the op's own dtype
// rules; results equal those of the separate kernels bit for bit.
struct FusedStep {
  std::string op;  // a row of pointwise_ops.inc
  struct Ref {
    bool is_input = true;
    uint32_t index = 0;
  };
  std::vector<Ref> args;
  TensorType type;  // the step's result; its shape broadcasts to the common shape
};
struct FusedPointwise {
  std::vector<TensorType> inputs;
  std::vector<FusedStep> steps;
  std::vector<uint32_t> outputs;  // step numbers; all of the common shape
};
Plan plan_fused(DeviceClass device_class, const FusedPointwise& fused);

}  // namespace ballast::kernels
