#include "bench/work.h"

#include <algorithm>
#include <string>

namespace ballast::bench {
namespace {

double product(const std::vector<int64_t>& extents, size_t from = 0) {
  double count = 1;
  for (size_t i = from; i < extents.size(); ++i) count *= static_cast<double>(extents[i]);
  return count;
}

bool starts(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

// The op whose multiply-adds count: that of a graph is named like it, with a suffix.
double flops_of(const Case& c, const std::vector<std::vector<int64_t>>& outputs) {
  if (c.op.find("matmul") != std::string::npos) {
    const auto& a = c.inputs[0].shape;
    const size_t k = a.size() - (int_of(c, "transpose_a") ? 2 : 1);
    return 2 * product(outputs[0]) * static_cast<double>(a[k]);
  }
  if (starts(c.op, "conv2d")) {
    // Forward: x, w -> y; gradients: dy with w or x. Each element of y is a dot product over a
    // filter, and each product appears once in either gradient.
    const bool is_forward = c.op.find("grad") == std::string::npos;
    const bool to_weight = c.op.find("weight") != std::string::npos;
    const auto& y = is_forward ? outputs[0] : c.inputs[0].shape;
    const auto& w = to_weight ? outputs[0] : c.inputs[1].shape;
    return 2 * product(y) * product(w, 1);
  }
  if (c.op.find("attention") != std::string::npos) {
    // q [..., n, d], k [..., m, d]: two products forward, five backward (one to have the scores
    // again). A causal mask leaves half of them.
    const bool is_backward = c.op.find("grad") != std::string::npos;
    const auto& q = c.inputs[is_backward ? 1 : 0].shape;
    const auto& k = c.inputs[is_backward ? 2 : 1].shape;
    const double scores = product(q) * static_cast<double>(k[k.size() - 2]);
    const double half = int_of(c, "causal") ? 0.5 : 1;
    return (is_backward ? 10 : 4) * scores * half;
  }
  return 0;
}

}  // namespace

Work work_of(const Case& c, uint64_t input_bytes, uint64_t output_bytes,
             const std::vector<std::vector<int64_t>>& outputs) {
  Work work{flops_of(c, outputs), input_bytes, output_bytes};
  // What takes elements out of its input need not read the rest.
  if (c.op == "slice") work.read = std::min(work.read, work.written);
  if (c.op == "gather" || c.op == "index_select") {
    work.read = std::min(work.read, work.written + c.inputs.back().bytes());
  }
  return work;
}

}  // namespace ballast::bench
