// The forms of Winograd's algorithm that there are kernels for, along one dimension. Taps of a
// window are taken apart into runs of up to three (Huang et al. 2020, "DWM: A Decomposable Winograd
// Method for Convolution Acceleration"; with a stride Yepez and Ko 2020, "Stride 2 1-D, 2-D, and
// 3-D Winograd for Convolutional Neural Networks"), each of which has a minimal algorithm F(2,
// taps) of its own (conv_winograd_recipe.h); a result is the sum of its runs'. Plain values.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace ballast::kernels {

// F(2, taps): two results, one after the other, from taps + 1 pixels by as many products. Of one
// tap both are multiplied by the same weight.
struct WinogradRun {
  int taps = 0;
  int first_tap = 0, tap_step = 1;      // in the window
  int first_pixel = 0, pixel_step = 1;  // in the tile's patch
  int phase = 0;                        // of the two that results of a gradient have

  constexpr int elements() const { return taps == 0 ? 0 : taps + 1; }
  constexpr int windows() const { return taps == 1 ? 1 : elements(); }
};

// A tile: `results` along a side, from a patch of pixels that is `step` from the next tile's, in
// windows of `window` taps.
struct WinogradForm {
  const char* name;
  const char* of_windows;  // the form whose kernel transforms windows alike
  int window;
  int step, patch, results;  // step: even
  int most_tiles;            // of a work-group
  WinogradRun runs[2];       // one of a single tap comes last

  // Of the tile's transform, and of the window's.
  constexpr int side() const { return runs[0].elements() + runs[1].elements(); }
  constexpr int windows() const { return runs[0].windows() + runs[1].windows(); }
  constexpr int elements() const { return side() * side(); }
  constexpr int window_elements() const { return windows() * windows(); }
  // Further rows and columns that tiles read of each of two phases of the input.
  constexpr int reach() const { return (patch - 1) / 2 - step / 2 + 1; }
};

// Without strides; two apart, of even taps and odd ones; towards the input of the latter, whose
// windows are flipped: `between` the pixels of dy, where padding is odd or even (of fours, 1).
// Runs: taps, the first and their step, the first pixel and their step, phase.
constexpr WinogradForm kWinogradDense{"dense", "dense", 3, 2, 4, 2, 128, {{3, 0, 1, 0, 1}}};
constexpr WinogradForm kWinogradFives{"fives", "fives", 5,  2,
                                      6,       2,       60, {{3, 0, 1, 0, 1}, {2, 3, 1, 3, 1}}};
constexpr WinogradForm kWinogradApart{"apart", "apart", 3,  4,
                                      5,       2,       96, {{2, 0, 2, 0, 2}, {1, 1, 2, 1, 2}}};
constexpr WinogradForm kWinogradFours{"fours", "fours", 4,  4,
                                      6,       2,       60, {{2, 0, 2, 0, 2}, {2, 1, 2, 1, 2}}};
constexpr WinogradForm kWinogradBetweenOdd{
    "between_odd", "apart", 3, 2, 3, 4, 84, {{2, 0, 2, 0, 1, 1}, {1, 1, 2, 0, 1, 0}}};
constexpr WinogradForm kWinogradBetweenEven{
    "between_even", "apart", 3, 2, 3, 4, 84, {{2, 0, 2, 0, 1, 0}, {1, 1, 2, 1, 1, 1}}};
constexpr WinogradForm kWinogradBetweenFours{
    "between_fours", "fours", 4, 2, 4, 4, 60, {{2, 0, 2, 0, 1, 0}, {2, 1, 2, 1, 1, 1}}};

inline const WinogradForm& winograd_form(std::string_view name) {
  constexpr const WinogradForm* kAll[] = {
      &kWinogradDense,      &kWinogradFives,       &kWinogradApart,       &kWinogradFours,
      &kWinogradBetweenOdd, &kWinogradBetweenEven, &kWinogradBetweenFours};
  return **std::find_if(std::begin(kAll), std::end(kAll),
                        [&](const WinogradForm* form) { return form->name == name; });
}

}  // namespace ballast::kernels
