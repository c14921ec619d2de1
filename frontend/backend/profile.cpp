#include "frontend/backend/profile.h"

#include <fmt/format.h>

#include <algorithm>

namespace ballast {

std::string profile_table(const std::vector<ProfileRow>& rows, uint64_t steps) {
  const double n = static_cast<double>(std::max<uint64_t>(steps, 1));
  double total_ns = 0;
  for (const ProfileRow& row : rows) total_ns += static_cast<double>(row.total_ns);
  std::string text = fmt::format("{:<44} {:>10} {:>10} {:>7} {:>10}\n", "kernel", "per step",
                                 "us/step", "share", "fastest us");
  for (const ProfileRow& row : rows) {
    const auto ns = static_cast<double>(row.total_ns);
    text += fmt::format("{:<44} {:>10.2f} {:>10.2f} {:>6.1f}% {:>10.2f}\n", row.kernel,
                        static_cast<double>(row.count) / n, ns / n / 1e3,
                        total_ns > 0 ? 100 * ns / total_ns : 0.0,
                        static_cast<double>(row.min_ns) / 1e3);
  }
  return text + fmt::format("{:<44} {:>10} {:>10.2f}\n", "all kernels", "", total_ns / n / 1e3);
}

}  // namespace ballast
