#include "bench/rows.h"

namespace ballast::bench {

std::vector<Case> conv_rows() { return {}; }

}  // namespace ballast::bench
