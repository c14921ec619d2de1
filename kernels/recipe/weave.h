// Putting the lanes of a few vectors in turns, as pixels have their channels, and back. Needs
// Halide.
//
// Halves of an even number of vectors are woven two by two. Of an odd number each lane of a vector
// has, among those in turns, a place within a vector that no other one of its vector has: lanes
// change places within vectors, and these are blended, which most processors do anywhere.
#pragma once

#include "kernels/recipe/shuffle.h"

#include <functional>
#include <vector>

namespace ballast::kernels {

// Vectors of a loop of so many lanes that is vectorized.
class Woven {
 public:
  using Exprs = std::vector<Halide::Expr>;

  explicit Woven(int lanes) : lanes_(lanes) {}

  // The first lanes of all vectors, then their second ones, and so on.
  Exprs weave(const Exprs& vectors) const {
    const int count = static_cast<int>(vectors.size());
    if (count == 1) return vectors;
    if (count % 2 == 0) {
      const Exprs even = weave(every_other(vectors, 0)), odd = weave(every_other(vectors, 1));
      return each(count, [&](int k) {
        return weave_lanes(even[k / 2], odd[k / 2], lanes_, k % 2 * lanes_ / 2);
      });
    }
    const Exprs turned = each(count, [&](int k) {
      std::vector<int> sources(lanes_);
      for (int lane = 0; lane < lanes_; ++lane) sources[(count * lane + k) % lanes_] = lane;
      return take_lanes(vectors[k], vectors[k], sources);
    });
    return each(count, [&](int k) {
      return blend(turned, [&](int lane) { return (lanes_ * k + lane) % count; });
    });
  }

  // What weave() undoes.
  Exprs part(const Exprs& vectors) const {
    const int count = static_cast<int>(vectors.size());
    if (count == 1) return vectors;
    if (count % 2 == 0) {
      const auto half = [&](int first) {
        return part(each(count / 2, [&](int k) {
          return take_lanes(vectors[2 * k], vectors[2 * k + 1], lanes_,
                            [&](int lane) { return 2 * lane + first; });
        }));
      };
      const Exprs even = half(0), odd = half(1);
      return each(count, [&](int k) { return (k % 2 == 0 ? even : odd)[k / 2]; });
    }
    return each(count, [&](int k) {
      const auto has_lane = [&](int lane, int vector) {
        return (lanes_ * vector + lane) % count == k;
      };
      const Halide::Expr blended = blend(vectors, [&](int lane) {
        int vector = 0;
        while (!has_lane(lane, vector)) ++vector;
        return vector;
      });
      return take_lanes(blended, blended, lanes_,
                        [&](int lane) { return (count * lane + k) % lanes_; });
    });
  }

 private:
  int lanes_;

  static Exprs each(int count, const std::function<Halide::Expr(int)>& value) {
    Exprs values;
    for (int k = 0; k < count; ++k) values.push_back(value(k));
    return values;
  }

  static Exprs every_other(const Exprs& vectors, int first) {
    return each(static_cast<int>(vectors.size()) / 2,
                [&](int k) { return vectors[2 * k + first]; });
  }

  // Every lane is the same one of vector source(lane).
  Halide::Expr blend(const Exprs& vectors, const std::function<int(int)>& source) const {
    Halide::Expr value = vectors[0];
    for (size_t k = 1; k < vectors.size(); ++k) {
      value = take_lanes(value, vectors[k], lanes_, [&](int lane) {
        return source(lane) == static_cast<int>(k) ? lanes_ + lane : lane;
      });
    }
    return value;
  }
};

}  // namespace ballast::kernels
