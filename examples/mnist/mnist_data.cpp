#include "examples/mnist/mnist_data.h"

#include "frontend/data/npy.h"

#include <array>
#include <utility>

namespace mnist {
namespace {

using ballast::Shape;
using ballast::Tensor;

constexpr int64_t kImages = 5000;
constexpr int64_t kPixels = 28 * 28;
constexpr int kTrainPerDigit = 400;

// Fisher-Yates over a 64-bit LCG (Knuth's MMIX constants), so the split is the same everywhere.
std::vector<int64_t> fixed_permutation(int64_t count) {
  std::vector<int64_t> order(count);
  for (int64_t i = 0; i < count; ++i) order[i] = i;
  uint64_t state = 1;
  for (int64_t i = count - 1; i > 0; --i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    std::swap(order[i], order[(state >> 33) % static_cast<uint64_t>(i + 1)]);
  }
  return order;
}

void expect_type(const std::string& path, const Tensor& tensor, const ballast::TensorType& type) {
  if (tensor.type() == type) return;
  ballast::fail(BALLAST_INVALID_ARGUMENT, "[mnist] {} holds {}, expected {}", path,
                to_string(tensor.type()), to_string(type));
}

std::pair<Tensor, Tensor> take(const std::vector<uint8_t>& images,
                               const std::vector<int32_t>& labels,
                               const std::vector<int64_t>& rows) {
  std::vector<float> pixels;
  std::vector<int32_t> digits;
  pixels.reserve(rows.size() * kPixels);
  for (int64_t row : rows) {
    for (int64_t i = 0; i < kPixels; ++i) {
      pixels.push_back(static_cast<float>(images[row * kPixels + i]) / 255.0f);
    }
    digits.push_back(labels[row]);
  }
  int64_t count = static_cast<int64_t>(rows.size());
  return {Tensor::on_host(pixels, {count, 28, 28}), Tensor::on_host(digits, {count})};
}

}  // namespace

Data load(const std::string& folder) {
  std::string image_path = folder + "/images.npy", label_path = folder + "/labels.npy";
  Tensor images = ballast::data::load_npy(image_path);
  Tensor labels = ballast::data::load_npy(label_path);
  expect_type(image_path, images, {ballast::DType::kU8, {kImages, 28, 28}});
  expect_type(label_path, labels, {ballast::DType::kI32, {kImages}});

  std::vector<int32_t> digits = labels.to_host<int32_t>();
  std::array<int, 10> seen{};
  std::vector<int64_t> train, test;
  for (int64_t row : fixed_permutation(kImages)) {
    int32_t digit = digits[row];
    if (digit < 0 || digit > 9) {
      ballast::fail(BALLAST_INVALID_ARGUMENT, "[mnist] {}: row {} has the label {}", label_path,
                    row, digit);
    }
    (seen[digit]++ < kTrainPerDigit ? train : test).push_back(row);
  }

  std::vector<uint8_t> pixels = images.to_host<uint8_t>();
  Data data;
  std::tie(data.train_images, data.train_labels) = take(pixels, digits, train);
  std::tie(data.test_images, data.test_labels) = take(pixels, digits, test);
  return data;
}

}  // namespace mnist
