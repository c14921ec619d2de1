#include "bench/rows.h"

namespace ballast::bench {

std::vector<Case> random_rows() { return {}; }

}  // namespace ballast::bench
