// The 5,000 MNIST images that tools/setup.sh fetches, split once and for all: of each digit, 400 to
// train on and 100 to test with. Host tensors, pixels in [0, 1].
#pragma once

#include "frontend/tensor/tensor.h"

#include <string>

namespace mnist {

struct Data {
  ballast::Tensor train_images, train_labels;  // f32[4000, 28, 28], i32[4000]
  ballast::Tensor test_images, test_labels;    // f32[1000, 28, 28], i32[1000]
};

// Reads images.npy and labels.npy; an Error names the file and what is wrong with it.
Data load(const std::string& folder);

}  // namespace mnist
