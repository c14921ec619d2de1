// The type of tokens: values without elements that only order effects (frontend/ops/print.h). The
// plugin knows no such type; there a token is u8[0].
#pragma once

#include "frontend/tensor/types.h"

namespace ballast {

constexpr DType kToken{0};  // what the ABI calls unset

inline TensorType token_type() { return {kToken, {}}; }
inline bool is_token(const TensorType& type) { return type.dtype == kToken; }

}  // namespace ballast
