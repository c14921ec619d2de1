// Every primitive in double precision, by name.
#pragma once

#include "tests/reference.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ballast::tests {

// Fills `outputs`, which have their types and sizes already.
using ReferenceOp = std::function<void(const std::vector<HostArray>& inputs, const Attrs& attrs,
                                       std::vector<HostArray>& outputs)>;

const std::map<std::string, ReferenceOp>& reference_ops();

}  // namespace ballast::tests
