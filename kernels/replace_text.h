// What those who rewrite OpenCL source share.
#pragma once

#include <string>
#include <string_view>

namespace ballast::kernels {

inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace ballast::kernels
