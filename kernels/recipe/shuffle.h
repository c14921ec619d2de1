// Transposing square blocks in registers, by shuffles of two vectors each.
#pragma once

#include <Halide.h>

#include <functional>
#include <string>
#include <vector>

namespace ballast::kernels {

// Lane i of the result is lane `lanes[i]` of `a` followed by `b`. For a loop over a dimension of
// just so many lanes that is vectorized: Halide sees a function of two numbers, whose name tells
// the recorder which lanes to take (kernel_source.cpp). Halide's own gathers from registers become
// chains of single lanes, of which compilers find only some to be one shuffle.
inline Halide::Expr take_lanes(const Halide::Expr& a, const Halide::Expr& b,
                               const std::vector<int>& lanes) {
  std::string name = "ballast_take_";
  for (int lane : lanes) name += "0123456789abcdefghijklmnopqrstuv"[lane];
  return Halide::Internal::Call::make(a.type(), name, {a, b}, Halide::Internal::Call::PureExtern);
}

// The same: lane i of so many is lane source(i).
inline Halide::Expr take_lanes(const Halide::Expr& a, const Halide::Expr& b, int count,
                               const std::function<int(int)>& source) {
  std::vector<int> lanes;
  for (int lane = 0; lane < count; ++lane) lanes.push_back(source(lane));
  return take_lanes(a, b, lanes);
}

// The first lanes of each of `parts`, side by side: of two the first half of each. They are
// accesses of memory along the loop that is vectorized, of which no lanes but those are read. A
// part that is joined as it is loaded needs no shuffle.
inline Halide::Expr join_lanes(const std::vector<Halide::Expr>& parts) {
  return Halide::Internal::Call::make(parts[0].type(), "ballast_join", parts,
                                      Halide::Internal::Call::PureExtern);
}

// Lanes of `a` and `b` in turns, from lane `first` of both on, `count` in all, as each of them has.
inline Halide::Expr weave_lanes(const Halide::Expr& a, const Halide::Expr& b, int count,
                                int first) {
  return take_lanes(a, b, count, [=](int lane) { return first + lane / 2 + lane % 2 * count; });
}

// block(lane, row, others...), `side` lanes and rows of `bytes` each, transposed: `block` and the
// steps after it, of which the last is the transpose. First rows interleave within 16 bytes, then
// whole parts of 16 bytes and more change places: one instruction per vector of any width. What
// joined_parts() says has them in place as it is loaded.
inline std::vector<Halide::Func> transpose_block(const Halide::Func& block, int side, int bytes,
                                                 const Halide::Var& l, const Halide::Var& r,
                                                 const std::vector<Halide::Var>& others,
                                                 bool is_joined = false) {
  using Halide::Expr;
  std::vector<Halide::Func> steps{block};
  const int part = std::min(16 / bytes, side);
  const auto at = [&](const Expr& row) {
    std::vector<Expr> place{l, row};
    place.insert(place.end(), others.begin(), others.end());
    return Expr(steps.back()(place));
  };
  const auto add = [&](const Expr& is_low, const Expr& first, const Expr& second,
                       const std::vector<int>& low, const std::vector<int>& high) {
    const Expr a = at(first), b = at(second);
    std::vector<Expr> place{l, r};
    place.insert(place.end(), others.begin(), others.end());
    Halide::Func step("shuffle" + std::to_string(steps.size()));
    step(place) = select(is_low, take_lanes(a, b, low), take_lanes(a, b, high));
    steps.push_back(step);
  };
  for (int width = 1; width < part; width *= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < side; ++i) {
      const int from = i / part * part + i % part / 2 + i % 2 * side;
      low.push_back(from);
      high.push_back(from + part / 2);
    }
    const Expr first = r / part * part + r % part / 2;
    add(r % 2 == 0, first, first + part / 2, low, high);
  }
  for (int width = part; width < side && !is_joined; width *= 2) {
    std::vector<int> low, high;
    for (int i = 0; i < side; ++i) {
      const bool is_second = i / width % 2 == 1;
      low.push_back(is_second ? i - width + side : i);
      high.push_back(is_second ? i + side : i + width);
    }
    const Expr first = r / (2 * width) * (2 * width) + r % width;
    add(r / width % 2 == 0, first, first + width, low, high);
  }
  return steps;
}

// Keeps what transpose_block() made in registers, a block of `side` lanes and rows at a time,
// within the loop `level`.
inline void hold_block(const std::vector<Halide::Func>& steps, const Halide::LoopLevel& level,
                       int side, const Halide::Var& l, const Halide::Var& r,
                       const std::vector<Halide::Var>& others) {
  for (Halide::Func step : steps) {
    step.compute_at(level).store_in(Halide::MemoryType::Register);
    step.bound_extent(l, side).bound_extent(r, side).vectorize(l).unroll(r);
    for (const Halide::Var& one : others) step.bound_extent(one, 1);
  }
}

// Row r of a block of `side` lanes and rows of 4 bytes for transpose_block(), of memory's
// element(column, row): parts of four columns of every fourth row.
inline Halide::Expr joined_parts(
    int side, const Halide::Var& l, const Halide::Var& r,
    const std::function<Halide::Expr(Halide::Expr column, Halide::Expr row)>& element) {
  constexpr int kPart = 4;
  std::vector<Halide::Expr> parts;
  for (int part = 0; part < side / kPart; ++part) {
    parts.push_back(element(r / kPart * kPart + l, part * kPart + r % kPart));
  }
  return join_lanes(parts);
}

}  // namespace ballast::kernels
