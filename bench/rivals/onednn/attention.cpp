#include "bench/rivals/onednn/onednn.h"

namespace ballast::bench::onednn {

void add_attention(Makers&) {}

}  // namespace ballast::bench::onednn
