// How much a CPU keeps in its vector registers, on which the tiles of products, convolutions and
// attention depend: sums that do not fit go through the stack in each step. Any thread.
#pragma once

#include <cstdint>

namespace ballast::kernels {

// Bytes of all vector registers: 2048 with AVX-512 (32 of 64), 512 with AVX2 (16 of 32) and on ARM
// (32 of 16). Of this machine's CPU, or as a RegistersScope says.
constexpr int64_t kWideRegisters = 2048, kNarrowRegisters = 512;
int64_t vector_register_bytes();
inline bool has_wide_registers() { return vector_register_bytes() >= kWideRegisters; }
// Whether it has wide registers and computes half of one at a time (AMD's Zen 4): then vectors of
// 32 bytes are as fast, and cheaper where they fit rows better. Not of a RegistersScope's.
bool halves_wide_registers();
inline bool has_wide_units() { return has_wide_registers() && !halves_wide_registers(); }

// While it lives, plans that this thread makes are for a CPU with so many bytes: tests make those
// of other machines.
class RegistersScope {
 public:
  explicit RegistersScope(int64_t bytes);
  ~RegistersScope();
  RegistersScope(const RegistersScope&) = delete;

 private:
  int64_t before_;
};

// Whether sums of `vectors` x 16 floats stay in registers beside what they are made of.
inline bool fits_registers(int64_t vectors) {
  constexpr int64_t kVectorBytes = 64;
  return 4 * vectors * kVectorBytes <= 3 * vector_register_bytes();
}

// How much longer a multiply-add takes where they do not.
inline double spilling_penalty(int64_t vectors) { return fits_registers(vectors) ? 1 : 3; }

}  // namespace ballast::kernels
