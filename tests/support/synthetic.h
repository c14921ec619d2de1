// Numbers that C++ and tests/fixtures/make_fixtures.py make alike, so that a fixture stores results
// only. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace ballast::testing {

// splitmix64 of (stream << 32) + i: the upper 24 bits, for i in [0, count).
inline std::vector<uint32_t> hashes(uint64_t stream, uint64_t count) {
  std::vector<uint32_t> values(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t z = (stream << 32) + i + 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    values[i] = static_cast<uint32_t>((z ^ (z >> 31)) >> 40);
  }
  return values;
}

// In [-bound, bound); exact where bound is a power of two.
inline std::vector<float> uniform(uint64_t stream, uint64_t count, float bound) {
  std::vector<float> values;
  values.reserve(count);
  for (uint32_t hash : hashes(stream, count)) {
    values.push_back((static_cast<float>(hash) / 8388608.0f - 1.0f) * bound);
  }
  return values;
}

}  // namespace ballast::testing
