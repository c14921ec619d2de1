// What losses do with their elements.
#pragma once

#include "frontend/tensor/tensor.h"

#include <string>

namespace ballast::ops {

// By "mean", "sum" or "none"; other words are refused at the open CallScope's line.
Tensor reduced(const char* op, const Tensor& losses, const std::string& reduction);

}  // namespace ballast::ops
