// A fixed number of elements that take no memory of their own while they are few: for what is on
// the way of every launch.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace ballast::device {

template <class T, size_t kFew = 8>
class ShortArray {
 public:
  explicit ShortArray(size_t size) : size_(size), many_(size > kFew ? size : 0) {}
  T* data() { return many_.empty() ? few_.data() : many_.data(); }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }

 private:
  size_t size_;
  std::array<T, kFew> few_{};
  std::vector<T> many_;
};

}  // namespace ballast::device
