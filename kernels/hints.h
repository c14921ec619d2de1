// What a generator tells the processor about memory. Halide sees functions; the recorder knows them
// by their names (kernel_source.cpp).
#pragma once

#include <Halide.h>

namespace ballast::kernels {

// `value`, and a request for the memory of `element`, an access of as many lanes. It need not
// exist.
inline Halide::Expr with_prefetch(const Halide::Expr& value, const Halide::Expr& element) {
  return Halide::Internal::Call::make(value.type(), "ballast_prefetch", {value, element},
                                      Halide::Internal::Call::PureExtern);
}

// `value`, which is stored as it is and past the caches: for whole vectors that begin where a cache
// line does, of results that no cache would keep.
inline Halide::Expr streamed(const Halide::Expr& value) {
  return Halide::Internal::Call::make(value.type(), "ballast_stream", {value},
                                      Halide::Internal::Call::PureExtern);
}

}  // namespace ballast::kernels
