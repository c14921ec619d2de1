// Attributes of an op: named values of four kinds, ordered by name so that equal sets compare
// equal.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace ballast::graph {

using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using Attrs = std::map<std::string, AttrValue>;

// Typed reads of attributes that OpDef::normalise has checked.
inline int64_t int_attr(const Attrs& attrs, const char* name) {
  return std::get<int64_t>(attrs.at(name));
}
inline double float_attr(const Attrs& attrs, const char* name) {
  return std::get<double>(attrs.at(name));
}
inline const std::string& string_attr(const Attrs& attrs, const char* name) {
  return std::get<std::string>(attrs.at(name));
}
inline const std::vector<int64_t>& ints_attr(const Attrs& attrs, const char* name) {
  return std::get<std::vector<int64_t>>(attrs.at(name));
}

}  // namespace ballast::graph
