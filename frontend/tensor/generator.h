// Generator: where random numbers come from. Its state {seed, offset} is a parameter on the device:
// every draw reads it and assigns the advanced one, so that eager calls, jitted calls and sunk
// steps give the same numbers, and a step compiled once draws new ones every time. Copies share the
// state. Thread-safe: no two eager calls draw the same numbers. Creating it is cheap: the state
// comes into being at the first draw, on the current device.
#pragma once

#include "frontend/tensor/parameter.h"

#include <cstdint>
#include <memory>

namespace ballast {

class Generator {
 public:
  explicit Generator(uint64_t seed = 0);

  void set_seed(uint64_t seed);  // restarts the sequence
  // The state as a tensor {seed, offset} (i64[2]), to save; and back.
  Tensor state() const;
  void set_state(const Tensor& state);

  // The key for drawing `elements` numbers; the next call gives what follows them.
  Tensor next(int64_t elements);

 private:
  struct Impl;
  Parameter parameter() const;  // once the state is locked
  std::shared_ptr<Impl> impl_;
};

// What the ops draw from unless told otherwise; set_seed (nn/initializer.h) seeds it too.
Generator& default_generator();

}  // namespace ballast
