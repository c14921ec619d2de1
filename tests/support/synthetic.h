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

// To each row of `values` the pattern of its class, hash % classes: were it noise alone, late steps
// would only amplify rounding. Fills `labels` with the classes.
inline void add_patterns(uint64_t stream, float bound, uint32_t classes,
                         const std::vector<uint32_t>& row_hashes, std::vector<float>& values,
                         std::vector<int32_t>& labels) {
  const size_t size = values.size() / row_hashes.size();
  const std::vector<float> patterns = uniform(stream, classes * size, bound);
  for (uint32_t hash : row_hashes) {
    float* row = values.data() + labels.size() * size;
    labels.push_back(static_cast<int32_t>(hash % classes));
    const float* pattern = patterns.data() + static_cast<size_t>(labels.back()) * size;
    for (size_t i = 0; i < size; ++i) row[i] += pattern[i];
  }
}

}  // namespace ballast::testing
