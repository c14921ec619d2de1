// Winograd's minimal filtering. Of 3x3 without strides it is F(2x2, 3x3): with d a tile's 4x4 of x,
// two apart from its neighbours', and w a window, its 2x2 results are
//
//   A' [(G w G') .* (B' d B)] A
//
//        1  0 -1  0        1   0   0        1  1  1  0
//   B' = 0  1  1  0    G = 1/2 1/2 1/2  A' = 0  1 -1 -1
//        0 -1  1  0        1/2 -1/2 1/2
//        0  1  0 -1        0   0   1
//
// where .* is by element and summed over channels, which makes 16 products of matrices of it: tiles
// by channels times channels by output channels (Lavin and Gray 2016, "Fast Algorithms for
// Convolutional Neural Networks"). By the same identity the gradient towards w is
//
//   G' [(A dy A') .* (B' d B)] G
//
// summed over tiles, with dy a tile's 2x2 of the results' gradients.
//
// Other windows and strides are runs of taps (conv_winograd_form.h). B', G and A' of a run of three
// are the above; of two and of one they are
//
//        1 -1  0        1  0        1  1  0             1  0        1        1  0
//   B' = 0  1  0    G = 1  1   A' = 0  1 -1        B' = 0  1    G = 1   A' = 0  1
//        0  1 -1        0  1
//
// on the run's own pixels, taps and results, and those of all runs lie one below the other, or for
// A' side by side. Needs Halide; stateless.
#pragma once

#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/winograd/conv_winograd_form.h"

#include <Halide.h>

#include <functional>
#include <vector>

namespace ballast::kernels::winograd {

using Halide::Expr;
using Halide::strict_float;

// Element i of a transform of a vector.
using Transform = std::function<Expr(int i, const std::vector<Expr>& of)>;

// Those of runs: of their own elements, from what the run has of a vector.
inline Expr spread(int taps, int i, const std::function<Expr(int)>& d) {
  if (taps == 1) return d(i);
  if (taps == 2) return i == 1 ? d(1) : strict_float(i == 0 ? d(0) - d(1) : d(1) - d(2));
  switch (i) {
    case 0:
      return strict_float(d(0) - d(2));
    case 1:
      return strict_float(d(1) + d(2));
    case 2:
      return strict_float(d(2) - d(1));
    default:
      return strict_float(d(1) - d(3));
  }
}
inline Expr gather(int taps, int i, const std::function<Expr(int)>& m) {
  if (taps == 1) return m(i);
  const Expr two = strict_float(i == 0 ? m(0) + m(1) : m(1) - m(2));
  if (taps == 2) return two;
  return strict_float(i == 0 ? two + m(2) : two - m(3));
}
inline Expr filter(int taps, int i, const std::function<Expr(int)>& w) {
  if (i == 0) return w(0);
  if (i == taps) return w(taps - 1);
  const Expr outer = strict_float(w(0) + w(taps - 1));
  if (taps == 2) return outer;
  return strict_float(0.5f * strict_float(i == 1 ? outer + w(1) : outer - w(1)));
}
inline Expr gather_grad(int taps, int i, const std::function<Expr(int)>& dy) {
  if (taps == 1) return dy(i);
  if (i == 0) return dy(0);
  if (i == taps) return -dy(1);
  return strict_float(i == 1 ? dy(0) + dy(1) : dy(0) - dy(1));
}
inline Expr filter_grad(int taps, int i, const std::function<Expr(int)>& m) {
  if (taps <= 2) return strict_float(m(i) + m(i + 1));
  if (i == 1) return strict_float(0.5f * strict_float(m(1) - m(2)));
  const Expr inner = strict_float(0.5f * strict_float(m(1) + m(2)));
  return strict_float(i == 0 ? m(0) + inner : inner + m(3));
}

// The run that element i of a form's belongs to, and which of the run's it is: of runs that have so
// many.
struct ElementOfRun {
  WinogradRun run;
  int i;
};
inline ElementOfRun element_of_run(const WinogradForm& form, int i,
                                   int (WinogradRun::*count)() const) {
  const int first = (form.runs[0].*count)();
  return i < first ? ElementOfRun{form.runs[0], i} : ElementOfRun{form.runs[1], i - first};
}

// Of vectors of a form: B' d, A' m, G w, A dy and G' m.
inline Transform spread(const WinogradForm& form) {
  return [=](int i, const std::vector<Expr>& d) {
    const auto [run, own] = element_of_run(form, i, &WinogradRun::elements);
    const int first = run.first_pixel, step = run.pixel_step;
    return spread(run.taps, own, [&](int k) { return d[first + k * step]; });
  };
}
inline Transform gather(const WinogradForm& form) {
  return [=](int i, const std::vector<Expr>& m) {
    const int phases = form.results / 2;
    Expr sum;
    for (int which = 0, first = 0; which < 2; first += form.runs[which++].elements()) {
      const WinogradRun& run = form.runs[which];
      if (run.taps == 0 || run.phase != i % phases) continue;
      const Expr own = gather(run.taps, i / phases, [&](int k) { return m[first + k]; });
      sum = sum.defined() ? strict_float(sum + own) : own;
    }
    return sum;
  };
}
inline Transform filter(const WinogradForm& form) {
  return [=](int i, const std::vector<Expr>& w) {
    const auto [run, own] = element_of_run(form, i, &WinogradRun::windows);
    const int first = run.first_tap, step = run.tap_step;
    return filter(run.taps, own, [&](int k) { return w[first + k * step]; });
  };
}
inline Transform gather_grad(const WinogradForm& form) {
  return [=](int i, const std::vector<Expr>& dy) {
    const auto [run, own] = element_of_run(form, i, &WinogradRun::elements);
    return gather_grad(run.taps, own, [&](int k) { return dy[k]; });
  };
}
inline Transform filter_grad(const WinogradForm& form) {
  return [=](int i, const std::vector<Expr>& m) {
    const auto has = [&](const WinogradRun& run) {
      const int at = i - run.first_tap;
      return at >= 0 && at % run.tap_step == 0 && at / run.tap_step < run.taps;
    };
    const bool is_second = !has(form.runs[0]);
    const WinogradRun& run = form.runs[is_second];
    const int first = is_second ? form.runs[0].elements() : 0;
    return filter_grad(run.taps, (i - run.first_tap) / run.tap_step,
                       [&](int k) { return m[first + k]; });
  };
}

// The element of the transformed windows that an element of the tiles is multiplied by.
inline Expr window_of(const WinogradForm& form, const Expr& element) {
  const int side = form.side(), windows = form.windows();
  if (side == windows) return element;
  return min(element / side, windows - 1) * windows + min(element % side, windows - 1);
}

// All of a transform of at(row, column), `side` rows and columns, to `results` of each: row by row.
template <class Along, class At>
std::vector<Expr> transformed(const Along& along, int results, int side, const At& at) {
  std::vector<Expr> values;
  for (int down = 0; down < results; ++down) {
    std::vector<Expr> rows;
    for (int column = 0; column < side; ++column) {
      std::vector<Expr> of_column;
      for (int row = 0; row < side; ++row) of_column.push_back(at(row, column));
      rows.push_back(along(down, of_column));
    }
    for (int across = 0; across < results; ++across) values.push_back(along(across, rows));
  }
  return values;
}

}  // namespace ballast::kernels::winograd
