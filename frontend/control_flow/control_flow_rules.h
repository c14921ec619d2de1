// The rows of cond, while and scan, and what they are written with. A residual is what a loop's
// gradient needs of its run: the carry before each step of a scan; for a while, whose number of
// steps is not known, a bounded stack of carries (control_flow_vjp.cpp).
#pragma once

#include "frontend/program/primitive.h"

namespace ballast {

struct ScanForm {
  explicit ScanForm(const Attrs& attrs);
  size_t consts, carried;
  int64_t length;
  bool is_reverse;
};

std::vector<Tensor> part(const std::vector<Tensor>& list, size_t begin, size_t count);
void append(std::vector<Tensor>& list, const std::vector<Tensor>& more);
std::vector<Tensor> joined(std::vector<Tensor> a, const std::vector<Tensor>& b);

// The list without its tokens, and with them again: where `like` has one, its own. A gradient runs
// parts of the forward pass again, with the token that was there before: the token that comes out
// leads nowhere, so what is run again is not printed again.
std::vector<Tensor> without_tokens(const std::vector<Tensor>& list);
std::vector<Tensor> with_tokens(const std::vector<Tensor>& list, const std::vector<Tensor>& like);

// `wanted`, with every part of a loop's carry that comes to depend on a wanted input.
std::vector<bool> with_active_carry(const Program& body, std::vector<bool> wanted, size_t consts,
                                    size_t carried);

std::vector<Tensor> vjp_cond(const VjpArgs& args);
std::vector<Tensor> augment_scan(const AugmentArgs& args);
std::vector<Tensor> vjp_scan(const VjpArgs& args);
std::vector<Tensor> augment_while(const AugmentArgs& args);
std::vector<Tensor> vjp_while(const VjpArgs& args);

std::vector<Tensor> jvp_cond(const JvpArgs& args);
std::vector<Tensor> jvp_scan(const JvpArgs& args);
std::vector<Tensor> jvp_while(const JvpArgs& args);

std::vector<Tensor> vmap_cond(const VmapArgs& args);
std::vector<Tensor> vmap_scan(const VmapArgs& args);
std::vector<Tensor> vmap_while(const VmapArgs& args);

}  // namespace ballast
