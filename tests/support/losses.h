// The losses of a training run in every mode, and what another framework computed.
#pragma once

#include "frontend/modes/sink.h"
#include "frontend/ops/shape.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace ballast::testing {

// Batches that repeat: each by itself, and `run` of them stacked; on the device.
struct LossData {
  std::vector<Tensor> x, y;
  Tensor stacked_x, stacked_y;

  // xs and ys [slots, ...]; `run` is a multiple of the slots.
  LossData(const Tensor& xs, const Tensor& ys, int64_t run)
      : x(slots(xs)), y(slots(ys)), stacked_x(stacked(x, run)), stacked_y(stacked(y, run)) {}

  int64_t run() const { return stacked_x.shape()[0]; }

 private:
  static std::vector<Tensor> slots(const Tensor& all) {
    std::vector<Tensor> parts;
    for (const Tensor& part : ops::split(all, all.shape()[0])) {
      parts.push_back(ops::squeeze(part, {0}));
    }
    return parts;
  }
  static Tensor stacked(const std::vector<Tensor>& parts, int64_t run) {
    std::vector<Tensor> all;
    for (int64_t i = 0; i < run; ++i) all.push_back(parts[static_cast<size_t>(i) % parts.size()]);
    return ops::stack(all);
  }
};

template <class Step>
std::vector<float> losses_one_by_one(Step& step, const LossData& data, int64_t steps) {
  std::vector<Tensor> losses;
  for (int64_t i = 0; i < steps; ++i) {
    const size_t slot = static_cast<size_t>(i) % data.x.size();
    losses.push_back(step(data.x[slot], data.y[slot]));
  }
  std::vector<float> values;
  for (const Tensor& loss : losses) values.push_back(loss.item<float>());
  return values;
}

template <class Loop>
std::vector<float> losses_sunk(Loop& loop, const LossData& data, int64_t steps) {
  std::vector<float> values;
  for (int64_t done = 0; done < steps; done += data.run()) {
    const auto n = static_cast<uint64_t>(data.run());
    Tensor losses = loop(n, each(data.stacked_x), each(data.stacked_y));
    for (float loss : losses.to_host<float>()) values.push_back(loss);
  }
  return values;
}

// Each within 1e-4 of what the fixture's "losses" say.
inline void expect_losses(const std::vector<float>& losses, const std::string& fixture,
                          const std::string& what) {
  std::ifstream file(fixture);
  auto expected = nlohmann::json::parse(file)["losses"].get<std::vector<double>>();
  ASSERT_EQ(expected.size(), losses.size()) << what;
  for (size_t i = 0; i < losses.size(); ++i) {
    ASSERT_NEAR(losses[i], expected[i], 1e-4 * expected[i]) << what << ", step " << i;
  }
}

}  // namespace ballast::testing
