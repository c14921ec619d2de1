#include "examples/mnist/loss_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

namespace mnist {
namespace {

constexpr double kWidth = 760, kHeight = 420;
constexpr double kLeft = 64, kRight = 20, kTop = 44, kBottom = 48;
constexpr double kFloor = 1e-6;  // a loss of zero has no logarithm

// Maps steps and losses to the picture.
class Axes {
 public:
  explicit Axes(const std::vector<float>& losses)
      : steps_(std::max<double>(1, static_cast<double>(losses.size()) - 1)) {
    auto [low, high] = std::minmax_element(losses.begin(), losses.end());
    low_ = std::floor(std::log10(std::max<double>(*low, kFloor)));
    high_ = std::max(low_ + 1, std::ceil(std::log10(std::max<double>(*high, kFloor))));
  }
  double x(double step) const { return kLeft + (kWidth - kLeft - kRight) * step / steps_; }
  double y(double loss) const {
    double part = (std::log10(std::max(loss, kFloor)) - low_) / (high_ - low_);
    return kHeight - kBottom - (kHeight - kTop - kBottom) * part;
  }
  double steps() const { return steps_; }
  int low() const { return static_cast<int>(low_); }
  int high() const { return static_cast<int>(high_); }

 private:
  double steps_, low_, high_;
};

std::string line(const Axes& axes, const std::vector<double>& values, const char* style) {
  std::string points;
  for (size_t i = 0; i < values.size(); ++i) {
    points += fmt::format("{:.1f},{:.1f} ", axes.x(static_cast<double>(i)), axes.y(values[i]));
  }
  return fmt::format("<polyline fill=\"none\" {} points=\"{}\"/>\n", style, points);
}

std::string grid(const Axes& axes) {
  std::string out;
  for (int power = axes.low(); power <= axes.high(); ++power) {
    double y = axes.y(std::pow(10.0, power));
    out += fmt::format("<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>\n",
                       kLeft, kWidth - kRight, y, y);
    out += fmt::format("<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{:g}</text>\n", kLeft - 8,
                       y + 4, std::pow(10.0, power));
  }
  for (int i = 0; i <= 5; ++i) {
    double step = std::round(axes.steps() * i / 5);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n",
                       axes.x(step), kHeight - kBottom + 20, step);
  }
  return out;
}

std::vector<double> running_mean(const std::vector<float>& losses) {
  constexpr double kDecay = 0.95;
  std::vector<double> means;
  double sum = 0, weight = 0;
  for (float loss : losses) {
    sum = kDecay * sum + loss;
    weight = kDecay * weight + 1;
    means.push_back(sum / weight);
  }
  return means;
}

}  // namespace

void write_loss_plot(const std::string& path, const std::string& title,
                     const std::vector<float>& losses) {
  if (losses.empty()) throw std::runtime_error("[loss_plot] there is no loss to draw");
  Axes axes(losses);
  std::ofstream out(path);
  out << fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
             "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
             "<text x=\"{2}\" y=\"24\" font-size=\"15\">{3}</text>\n",
             kWidth, kHeight, kLeft, title)
      << grid(axes)
      << line(axes, {losses.begin(), losses.end()}, "stroke=\"#9ecae1\" stroke-width=\"1\"")
      << line(axes, running_mean(losses), "stroke=\"#08519c\" stroke-width=\"2\"")
      << fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">step</text>\n</svg>\n",
                     (kLeft + kWidth - kRight) / 2, kHeight - 10);
  out.close();
  if (!out) throw std::runtime_error(fmt::format("[loss_plot] cannot write {}", path));
}

}  // namespace mnist
