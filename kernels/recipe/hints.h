// What a generator tells the compiler about loops and the processor about memory. Halide sees names
// and functions; the recorder knows them by their names (kernel_source.cpp).
#pragma once

#include <Halide.h>

#include <string>

namespace ballast::kernels {

// `value`, and a request for the memory of `element`, an access of as many lanes. It need not
// exist.
inline Halide::Expr with_prefetch(const Halide::Expr& value, const Halide::Expr& element) {
  return Halide::Internal::Call::make(value.type(), "ballast_prefetch", {value, element},
                                      Halide::Internal::Call::PureExtern);
}

// The same far ahead of its use, into the second cache: where lines are asked for in the order in
// which they lie, however they are read, memory keeps up (a Zen 4, `docs/kernels.md`).
inline Halide::Expr with_early_prefetch(const Halide::Expr& value, const Halide::Expr& element) {
  return Halide::Internal::Call::make(value.type(), "ballast_early_prefetch", {value, element},
                                      Halide::Internal::Call::PureExtern);
}
constexpr int kEarly = 2048;  // how many elements ahead

// The same for a loop of multiply-adds whose sums fill the registers, of a vector or a scalar: the
// request stands at the loop's end, as loads do not pass it. Its place is to be one of those read
// and a number, or sums go through the stack nevertheless.
inline Halide::Expr with_late_prefetch(const Halide::Expr& value, const Halide::Expr& element) {
  return Halide::Internal::Call::make(value.type(), "ballast_late_prefetch", {value, element},
                                      Halide::Internal::Call::PureExtern);
}

// `value`, and a request for the memory of the kernel's result of this name from element `index`
// on; none where results go past the caches.
inline Halide::Expr with_result_prefetch(const Halide::Expr& value, const std::string& result,
                                         const Halide::Expr& index) {
  return Halide::Internal::Call::make(value.type(), "ballast_ask_" + result, {value, index},
                                      Halide::Internal::Call::PureExtern);
}

// `value`, which is stored as it is and past the caches: for whole vectors that begin where a cache
// line does, of results that no cache would keep.
inline Halide::Expr streamed(const Halide::Expr& value) {
  return Halide::Internal::Call::make(value.type(), "ballast_stream", {value},
                                      Halide::Internal::Call::PureExtern);
}

// The name of the loop over steps of a tile of so many vectors. Of one vector, compilers take four
// steps at a time, those left over one by one: a step is few multiply-adds then, so addresses and
// the loop itself are a fifth of the instructions (3x3 convolutions of 8x64x56x56 1.1 times faster
// on a Zen 3, 5x5 of 16 to 6 channels 1.15). How many steps there are is hidden from them: of a
// constant that is no multiple of four they would unroll all, and sum row by row.
inline std::string steps_of_tile(int vectors) { return vectors == 1 ? "steps_by_fours" : "steps"; }

// The name of a Func of a GPU's work-group of which each work-item computes and reads `count`
// values alone, a power of two: in registers. They are its innermost dimensions; Halide would give
// every item room for all of the group.
inline std::string of_item(const std::string& name, int count) {
  return name + "_of_item_" + std::to_string(count);
}

// The same of one computed in every iteration of a loop, of memory that nothing in the loop writes:
// each iteration computes it for the next one, so that the group does other work while it waits.
inline std::string fetched_ahead(const std::string& name, int count) {
  return of_item(name + "_ahead", count);
}

// The name of a Func in a GPU's local memory that has room for two iterations of the loop which
// computes it (ring_buffer(kTurns)): items that are ahead write one while others read the other, so
// that the loop needs no barrier at its end.
constexpr int kTurns = 2;
inline std::string in_turns(const std::string& name) { return name + "_in_turns"; }

// The name of a Func whose kernel may use so many of a GPU's registers, where the compiler would
// take fewer for the sake of more groups at a time.
inline std::string in_registers(const std::string& name, int count) {
  return name + "_in_registers_" + std::to_string(count);
}

}  // namespace ballast::kernels
