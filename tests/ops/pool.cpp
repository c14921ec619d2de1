#include "tests/op_table.h"
#include "tests/samples.h"

namespace ballast::tests {

void add_pool(OpFamilies&) {}

}  // namespace ballast::tests
