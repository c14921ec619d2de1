// The gradients of control flow, and how scan's attributes read. A residual is what a loop's
// gradient needs of its run: the carry before each step of a scan; for a while, whose number of
// steps is not known, a bounded stack of carries (control_flow_vjp.cpp).
#pragma once

#include "frontend/primitive.h"

namespace ballast {

struct ScanForm {
  explicit ScanForm(const Attrs& attrs);
  size_t consts, carried;
  int64_t length;
  bool is_reverse;
};

std::vector<Tensor> vjp_cond(const VjpArgs& args);
std::vector<Tensor> augment_scan(const AugmentArgs& args);
std::vector<Tensor> vjp_scan(const VjpArgs& args);
std::vector<Tensor> augment_while(const AugmentArgs& args);
std::vector<Tensor> vjp_while(const VjpArgs& args);

}  // namespace ballast
