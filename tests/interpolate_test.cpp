// Interpolation against torch's rule as loops in double.
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"
#include "tests/reference_ops.h"
#include "tests/support/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ballast::tests {
namespace {

struct Case {
  Shape x;
  std::vector<int64_t> size;
  std::string mode;
  bool align_corners;
};

// Which elements of an axis make up element i of the result.
Parts along(int64_t i, int64_t extent, int64_t size, const Case& c) {
  const double scale = static_cast<double>(extent) / static_cast<double>(size);
  if (c.mode == "nearest") {
    return {{static_cast<size_t>(std::floor(static_cast<double>(i) * scale + 1e-9)), 1.0}};
  }
  double place = (static_cast<double>(i) + 0.5) * scale - 0.5;
  if (c.align_corners) {
    place = size == 1 ? 0 : static_cast<double>(i * (extent - 1)) / static_cast<double>(size - 1);
  }
  Parts parts;
  // An element's share falls to 0 over a distance of 1; those beyond the ends are the last ones.
  for (int64_t at = -1; at <= extent; ++at) {
    const double share = 1 - std::abs(place - static_cast<double>(at));
    const auto inside = static_cast<size_t>(std::clamp<int64_t>(at, 0, extent - 1));
    if (share > 0) parts.emplace_back(inside, share);
  }
  return parts;
}

TEST(InterpolateTest, IsItsDefinition) {
  for (const Case& c : std::vector<Case>{{{1, 2, 3, 4}, {6, 4}, "nearest", false},
                                         {{2, 1, 5, 4}, {3, 7}, "nearest", false},
                                         {{1, 2, 3, 4}, {6, 8}, "bilinear", false},
                                         {{2, 1, 5, 4}, {3, 7}, "bilinear", false},
                                         {{1, 2, 3, 4}, {5, 2}, "bilinear", true},
                                         {{1, 1, 3, 1}, {1, 3}, "bilinear", true},
                                         {{2, 3, 5}, {8}, "linear", false},
                                         {{2, 3, 5}, {3}, "nearest", false},
                                         {{1, 1, 2, 3, 2}, {3, 2, 4}, "trilinear", false}}) {
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      SCOPED_TRACE(c.mode + to_string(c.x) + to_string(c.size));
      HostArray x = real(c.x, -1, 1);
      x.type.dtype = dtype;
      for (double& value : x.values) value = rounded(value, dtype);
      Shape shape(c.x.begin(), c.x.begin() + 2);
      shape.insert(shape.end(), c.size.begin(), c.size.end());
      std::vector<Parts> results;
      for (size_t i = 0; i < static_cast<size_t>(TensorType{dtype, shape}.elements()); ++i) {
        const Index at = index_of(i, shape);
        Parts parts = {{static_cast<size_t>(at[0] * c.x[1] + at[1]), 1.0}};
        for (size_t d = 2; d < shape.size(); ++d) {
          Parts finer;
          for (const auto& [outer, share] : parts) {
            for (const auto& [inner, part] : along(at[d], c.x[d], shape[d], c)) {
              finer.emplace_back(outer * static_cast<size_t>(c.x[d]) + inner, share * part);
            }
          }
          parts = finer;
        }
        results.push_back(parts);
      }
      const auto call = [&](const Tensor& t) {
        return ops::interpolate(t, c.size, c.mode, c.align_corners);
      };
      expect_parts(call, x, shape, results);
    }
  }
}

TEST(InterpolateTest, AsACellAndInErrors) {
  const Tensor x = Tensor::from_host<float>({1, 2, 3, 4}, {1, 1, 2, 2});
  EXPECT_EQ(nn::Upsample(2)(x).to_host<float>(),
            (std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
  EXPECT_EQ(nn::Upsample(3, "bilinear")(x).shape(), (Shape{1, 1, 6, 6}));
  EXPECT_NE(message_of([&] {
              ops::interpolate(x, {4, 4}, "cubic");
            })
                .find("[interpolate] mode is \"cubic\", expected nearest or, for 2 axes, bilinear "
                      "(at "),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              ops::interpolate(x, {4});
            }).find("[interpolate] input is f32[1, 1, 2, 2], size [4]; expected"),
            std::string::npos);
  EXPECT_THROW(ops::interpolate(x, {0, 4}), Error);
  const auto both = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{ops::interpolate(in[0], {3, 3}, "bilinear"),
                               ops::interpolate(in[0], {3, 3})};
  };
  for (const Equation& equation : trace(both, {{DType::kBF16, {1, 1, 2, 2}}}).equations) {
    EXPECT_STREQ(equation.where.file, __FILE__) << equation.primitive;
  }
}

}  // namespace
}  // namespace ballast::tests
