#include "bench/rows.h"

namespace ballast::bench {

std::vector<Case> attention_rows() { return {}; }

}  // namespace ballast::bench
