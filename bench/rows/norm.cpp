#include "bench/rows.h"

namespace ballast::bench {

std::vector<Case> norm_rows() { return {}; }

}  // namespace ballast::bench
