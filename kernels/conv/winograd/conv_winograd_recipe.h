// Winograd's F(2x2, 3x3) for 3x3 convolutions, and what is made of it for others. Without strides,
// with d a tile's 4x4 of x, two apart from its neighbours', and w a window, its 2x2 results are
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
// With a stride of 2 a tile reads 5x5 of x, four apart from its neighbours'. Even and odd taps meet
// even and odd pixels: two taps and one, of which only the two save a multiplication, but both
// results of the one share a weight. 25 products instead of 36, of 16 transformed weights:
//
//        1  0 -1  0  0        1   0   0        1  1  0  1  0
//   B' = 0  0  1  0  0    G = 1   0   1   A' = 0  1 -1  0  1
//        0  0  1  0 -1        0   0   1
//        0  1  0  0  0        0   1   0
//        0  0  0  1  0        0   1   0
//
// (Yepez and Ko 2020, "Stride 2 1-D, 2-D, and 3-D Winograd for Convolutional Neural Networks").
// The gradient towards x lies between the pixels of dy, and a tile's 4x4 of it reads 3x3 of dy, two
// apart from its neighbours'. With w flipped and the same G, where padding is odd and where it is
// even,
//
//        1 -1  0        0  0  0  1  0           1 -1  0        1  1  0  0  0
//   B' = 0  1  0   A' = 1  1  0  0  0      B' = 0  1  0   A' = 0  0  0  1  0
//        0  1 -1        0  0  0  0  1           0  1 -1        0  1 -1  0  0
//        1  0  0        0  1 -1  0  0           0  1  0        0  0  0  0  1
//        0  1  0                                0  0  1
//
// Windows of 5x5 are taken apart along each dimension too (Huang et al. 2020, "DWM: A Decomposable
// Winograd Method for Convolution Acceleration"): their first three taps as above, the other two as
// even taps are with a stride. A tile's 2x2 results take 6x6 of x and 49 products instead of 100.
// 4x4 with a stride of 2, as even and odd taps are two each, takes 36 instead of 64.
//
// Needs Halide; stateless.
#pragma once

#include "kernels/conv/conv_recipe.h"
#include "kernels/conv/winograd/conv_winograd.h"

#include <Halide.h>

#include <string>
#include <vector>

namespace ballast::kernels::winograd {

constexpr int kSide = 4, kElements = kSide * kSide;  // of a transformed tile, and 3x3 window

using Halide::Expr;
using Halide::strict_float;

// Element i of a transform of a vector.
using Transform = Expr (*)(int i, const std::vector<Expr>& of);

// Element i of B' d, A' m, G w, A dy and G' m, along one dimension.
inline Expr spread(int i, const std::vector<Expr>& d) {
  switch (i) {
    case 0:
      return strict_float(d[0] - d[2]);
    case 1:
      return strict_float(d[1] + d[2]);
    case 2:
      return strict_float(d[2] - d[1]);
    default:
      return strict_float(d[1] - d[3]);
  }
}
inline Expr gather(int i, const std::vector<Expr>& m) {
  return i == 0 ? strict_float(strict_float(m[0] + m[1]) + m[2])
                : strict_float(strict_float(m[1] - m[2]) - m[3]);
}
inline Expr filter(int i, const std::vector<Expr>& w) {
  switch (i) {
    case 0:
      return w[0];
    case 1:
      return strict_float(0.5f * strict_float(strict_float(w[0] + w[2]) + w[1]));
    case 2:
      return strict_float(0.5f * strict_float(strict_float(w[0] + w[2]) - w[1]));
    default:
      return w[2];
  }
}
inline Expr gather_grad(int i, const std::vector<Expr>& dy) {
  switch (i) {
    case 0:
      return dy[0];
    case 1:
      return strict_float(dy[0] + dy[1]);
    case 2:
      return strict_float(dy[0] - dy[1]);
    default:
      return -dy[1];
  }
}
inline Expr filter_grad(int i, const std::vector<Expr>& m) {
  switch (i) {
    case 0:
      return strict_float(m[0] + strict_float(0.5f * strict_float(m[1] + m[2])));
    case 1:
      return strict_float(0.5f * strict_float(m[1] - m[2]));
    default:
      return strict_float(strict_float(0.5f * strict_float(m[1] + m[2])) + m[3]);
  }
}

// The first three with a stride of 2 (`apart`), of G w but the last element, which is the one
// before; and B' d and A' m towards x (`between`), of padding of a parity.
inline Expr spread_apart(int i, const std::vector<Expr>& d) {
  switch (i) {
    case 0:
      return strict_float(d[0] - d[2]);
    case 1:
      return d[2];
    case 2:
      return strict_float(d[2] - d[4]);
    default:
      return d[i == 3 ? 1 : 3];
  }
}
inline Expr gather_apart(int i, const std::vector<Expr>& m) {
  return i == 0 ? strict_float(strict_float(m[0] + m[1]) + m[3])
                : strict_float(strict_float(m[1] - m[2]) + m[4]);
}
inline Expr filter_apart(int i, const std::vector<Expr>& w) {
  switch (i) {
    case 0:
      return w[0];
    case 1:
      return strict_float(w[0] + w[2]);
    case 2:
      return w[2];
    default:
      return w[1];
  }
}
inline Expr gather_grad_apart(int i, const std::vector<Expr>& dy) {
  return i < 3 ? gather_grad(i < 2 ? i : 3, dy) : dy[i - 3];
}
inline Expr filter_grad_apart(int i, const std::vector<Expr>& m) {
  const int first = i == 0 ? 0 : i == 1 ? 3 : 1;
  return strict_float(m[first] + m[first + 1]);
}
template <int kParity>
Expr spread_between(int i, const std::vector<Expr>& d) {
  switch (i) {
    case 0:
      return strict_float(d[0] - d[1]);
    case 1:
      return d[1];
    case 2:
      return strict_float(d[1] - d[2]);
    default:
      return d[i - 2 - kParity];
  }
}
template <int kParity>
Expr gather_between(int i, const std::vector<Expr>& m) {
  const bool is_single = i % 2 != kParity;
  if (is_single) return m[3 + i / 2];
  return i < 2 ? strict_float(m[0] + m[1]) : strict_float(m[1] - m[2]);
}

// B' d, A' m and G w of windows of 5x5 (`fives`).
inline Expr spread_fives(int i, const std::vector<Expr>& d) {
  switch (i) {
    case 4:
      return strict_float(d[3] - d[4]);
    case 5:
      return d[4];
    case 6:
      return strict_float(d[4] - d[5]);
    default:
      return spread(i, d);
  }
}
inline Expr gather_fives(int i, const std::vector<Expr>& m) {
  return strict_float(gather(i, m) + strict_float(i == 0 ? m[4] + m[5] : m[5] - m[6]));
}
inline Expr filter_fives(int i, const std::vector<Expr>& w) {
  switch (i) {
    case 4:
      return w[3];
    case 5:
      return strict_float(w[3] + w[4]);
    case 6:
      return w[4];
    default:
      return filter(i, w);
  }
}

inline Expr gather_grad_fives(int i, const std::vector<Expr>& dy) {
  return i < 4 ? gather_grad(i, dy) : gather_grad_apart(i - 4, dy);
}
inline Expr filter_grad_fives(int i, const std::vector<Expr>& m) {
  return i < 3 ? filter_grad(i, m) : strict_float(m[i + 1] + m[i + 2]);
}

// Of windows of 4x4 with a stride of 2, even taps and odd ones each as the even ones of 3x3
// (`fours`), and the same towards x of padding 1.
template <Transform kOfEven>
Expr of_fours(int i, const std::vector<Expr>& of) {
  return i < 3 ? kOfEven(i, of) : kOfEven(i - 3, {of.begin() + 1, of.end()});
}
inline Expr sum_of_two(int i, const std::vector<Expr>& m) {
  return strict_float(i == 0 ? m[0] + m[1] : m[1] - m[2]);
}
inline Expr gather_fours(int i, const std::vector<Expr>& m) {
  return strict_float(sum_of_two(i, m) + sum_of_two(i, {m.begin() + 3, m.end()}));
}
inline Expr gather_grad_fours(int i, const std::vector<Expr>& dy) {
  return gather_grad_apart(i % 3, dy);
}
inline Expr filter_grad_fours(int i, const std::vector<Expr>& m) {
  const int first = i % 2 * 3 + i / 2;
  return strict_float(m[first] + m[first + 1]);
}
inline Expr gather_between_fours(int i, const std::vector<Expr>& m) {
  return sum_of_two(i / 2, {m.begin() + i % 2 * 3, m.end()});
}

// A form and its transforms; towards the weights not of all.
struct Form : WinogradForm {
  Transform spread, gather, filter, gather_grad = nullptr, filter_grad = nullptr;

  // The element of the transformed windows that an element of the tiles is multiplied by.
  Expr of_window(const Expr& element) const {
    if (side == windows) return element;
    return min(element / side, windows - 1) * windows + min(element % side, windows - 1);
  }
};
inline Form form_of(const std::string& name) {
  if (name == kWinogradApart.name) {
    return {kWinogradApart, spread_apart,      gather_apart,
            filter_apart,   gather_grad_apart, filter_grad_apart};
  }
  if (name == kWinogradBetweenOdd.name) {
    return {kWinogradBetweenOdd, spread_between<1>, gather_between<1>, filter_apart};
  }
  if (name == kWinogradBetweenEven.name) {
    return {kWinogradBetweenEven, spread_between<0>, gather_between<0>, filter_apart};
  }
  if (name == kWinogradFours.name) {
    return {kWinogradFours,         of_fours<spread_apart>, gather_fours,
            of_fours<filter_apart>, gather_grad_fours,      filter_grad_fours};
  }
  if (name == kWinogradBetweenFours.name) {
    return {kWinogradBetweenFours, of_fours<spread_between<1>>, gather_between_fours,
            of_fours<filter_apart>};
  }
  if (name == kWinogradFives.name) {
    return {kWinogradFives, spread_fives,      gather_fives,
            filter_fives,   gather_grad_fives, filter_grad_fives};
  }
  return {kWinogradDense, spread, gather, filter, gather_grad, filter_grad};
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
