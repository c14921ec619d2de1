#include "kernels/source/source_places.h"

#include "kernels/source/replace_text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace ballast::kernels {
namespace {

using Terms = std::vector<std::string>;

bool is_number(const std::string& term) { return term[0] != '_'; }

// When it is computed: loops count in names without a number.
int order_of(const std::string& term) {
  if (is_number(term)) return 0;
  return std::isdigit(term[1]) ? std::atoi(&term[1]) : std::numeric_limits<int>::max();
}

// What names stand for, by the lines that declare them.
class Places {
 public:
  void note(const std::string& line) {
    const size_t equals = line.find(" = ");
    if (equals == std::string::npos || line.back() != ';') return;
    const std::string name = declared_at(line, 0).name;
    const std::string value = line.substr(equals + 3, line.size() - equals - 4);
    constexpr std::string_view kCast = "(long)(";
    if (value.compare(0, kCast.size(), kCast) == 0) {
      const std::string source = value.substr(kCast.size(), value.size() - kCast.size() - 1);
      (is_number(source) ? numbers_ : casts_)[name] = source;
    } else if (value[0] == '_') {
      note_operation(name, value);
    }
  }

  // All terms of a sum that is cast, else two of a sum; none of another. First those computed
  // first.
  Terms terms_of(const std::string& index) const {
    Terms terms;
    const std::function<void(const std::string&)> add = [&](const std::string& term) {
      const auto sum = sums_.find(term);
      if (sum == sums_.end()) return terms.push_back(term);
      add(sum->second.first);
      add(sum->second.second);
    };
    if (const auto cast = casts_.find(index); cast != casts_.end()) {
      add(cast->second);
    } else if (const auto sum = sums_.find(index); sum != sums_.end()) {
      terms = {sum->second.first, sum->second.second};
    }
    std::stable_sort(terms.begin(), terms.end(), [](const std::string& a, const std::string& b) {
      return order_of(a) < order_of(b);
    });
    return terms;
  }

  // Of the index of a vector on the stack.
  Terms vector_terms_of(const std::string& index) const {
    const auto place = vectors_.find(index);
    Terms terms = terms_of(place == vectors_.end() ? index : place->second);
    const auto is_name = [](const std::string& term) { return !is_number(term); };
    std::stable_partition(terms.begin(), terms.end(), is_name);
    return terms;
  }

  // The first element of such a vector of `lanes`, where its index is not a sum; "" elsewhere.
  std::string element_of(const std::string& index, int lanes) const {
    const auto found = shifts_.find(index);
    if (found == shifts_.end() || vectors_.count(index) > 0) return "";
    const auto& [element, bits] = found->second;
    return lanes == 1 << number_of(bits) && is_multiple(element, lanes) ? element : "";
  }

 private:
  using Operands = std::pair<std::string, std::string>;

  void note_operation(const std::string& name, const std::string& value) {
    const size_t space = value.find(' '), next = value.find(' ', space + 1);
    if (next == std::string::npos) return;
    const std::string sign = value.substr(space + 1, next - space - 1);
    const Operands operands{value.substr(0, space), value.substr(next + 1)};
    if (sign == "+") sums_[name] = operands;
    if (sign == "*") products_[name] = operands;
    if (sign == ">>") note_vector(name, operands);
  }

  // "_1 * 8 >> 3", of numbers that have names, is _1.
  void note_vector(const std::string& name, const Operands& shift) {
    shifts_[name] = shift;
    const auto product = products_.find(shift.first);
    if (product == products_.end()) return;
    const int lanes = number_of(product->second.second), bits = number_of(shift.second);
    if (lanes > 0 && lanes == 1 << bits) vectors_[name] = product->second.first;
  }
  // As products and sums of numbers show it.
  bool is_multiple(const std::string& name, int of) const {
    if (const int number = number_of(name); number != 0) return number % of == 0;
    if (const auto sum = sums_.find(name); sum != sums_.end()) {
      return is_multiple(sum->second.first, of) && is_multiple(sum->second.second, of);
    }
    const auto product = products_.find(name);
    return product != products_.end() &&
           (is_multiple(product->second.first, of) || is_multiple(product->second.second, of));
  }

  int number_of(const std::string& name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? 0 : std::atoi(found->second.c_str());
  }

  std::map<std::string, Operands> sums_, products_, shifts_;
  std::map<std::string, std::string> casts_, numbers_, vectors_;
};

// "(a + b)[c]" of base and terms (a, b, c).
std::string access(const std::string& base, Terms terms) {
  const std::string last = terms.back();
  terms.pop_back();
  return fmt::format("({} + {})[{}]", base, fmt::join(terms, " + "), last);
}

// 8 of "type8" that ends there.
int lanes_before(const std::string& line, size_t end) {
  size_t begin = end;
  while (begin > 0 && std::isdigit(line[begin - 1])) --begin;
  return begin == end ? 0 : std::atoi(&line[begin]);
}

// The vector that begins at `element`: "((type8 *)(_base + _1))[0]" for "((type8 *)_base)".
std::string vector_at(const std::string& vectors, const std::string& element) {
  const size_t base = vectors.rfind(")_") + 1, end = vectors.size() - 1;
  return fmt::format("{}({} + {}))[0]", vectors.substr(0, base), vectors.substr(base, end - base),
                     element);
}

std::string with_split_place(std::string line, const Places& places, bool of_stack) {
  constexpr std::string_view kVector = "_anywhere*)", kOfStack = " *)_";
  const auto terms_at = [&](size_t at, char end) {
    return places.terms_of(line.substr(at, line.find(end, at) - at));
  };
  const size_t vector = line.find(kVector), plus = line.find(" + _", vector);
  if (vector != std::string::npos && plus != std::string::npos) {
    const size_t at = plus + 3;
    const Terms terms = terms_at(at, ')');
    if (terms.size() > 1) {
      line.replace(at, line.find(')', at) - at, fmt::format("{}", fmt::join(terms, " + ")));
    }
    return line;
  }
  const size_t stack = line.find(kOfStack), index = line.find(")[_", stack);
  if (of_stack && stack != std::string::npos && index != std::string::npos) {
    const size_t base = line.rfind("((", stack), at = index + 2, close = line.find(']', at);
    const std::string vectors = line.substr(base, index + 1 - base),
                      number = line.substr(at, close - at),
                      element = places.element_of(number, lanes_before(line, stack));
    const Terms terms = places.vector_terms_of(number);
    if (!element.empty()) {
      line.replace(base, close + 1 - base, vector_at(vectors, element));
    } else if (terms.size() > 1) {
      line.replace(base, close + 1 - base, access(vectors, terms));
    }
    return line;
  }
  const size_t equals = line.find(" = _"), bracket = line.find("[_", equals);
  if (equals != std::string::npos && bracket != std::string::npos) {
    const size_t base = equals + 3, close = line.find(']', bracket);
    const Terms terms = terms_at(bracket + 1, ']');
    if (terms.size() > 1 && close + 2 == line.size()) {
      line.replace(base, close + 1 - base, access(line.substr(base, bracket - base), terms));
    }
  }
  return line;
}

}  // namespace

void split_places(std::string& text, bool of_stack) {
  Places places;
  Lines lines = lines_of(text);
  for (std::string& line : lines) {
    places.note(line);
    line = with_split_place(line, places, of_stack);
  }
  text = text_of(lines);
}

}  // namespace ballast::kernels
