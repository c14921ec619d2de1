#include "frontend/program/text_reader.h"

#include "frontend/tensor/error.h"

#include <cctype>
#include <charconv>
#include <cstdlib>

namespace ballast {

void TextReader::complain(const std::string& what, size_t at) const {
  size_t line = 1, column = 1;
  for (size_t i = 0; i < at && i < text_.size(); ++i) {
    column = text_[i] == '\n' ? 1 : column + 1;
    line += text_[i] == '\n';
  }
  fail(BALLAST_INVALID_ARGUMENT, "[{}] line {}, column {}: {}", call_, line, column, what);
}

size_t TextReader::position() {
  peek();
  return position_;
}

char TextReader::peek() {
  while (position_ < text_.size() && (text_[position_] == ' ' || text_[position_] == '\t')) {
    ++position_;
  }
  return position_ < text_.size() ? text_[position_] : '\0';
}

bool TextReader::accept(const std::string& token) {
  peek();
  if (text_.compare(position_, token.size(), token) != 0) return false;
  position_ += token.size();
  return true;
}

bool TextReader::accept_word(const std::string& word) {
  peek();
  const size_t end = position_ + word.size();
  if (text_.compare(position_, word.size(), word) != 0) return false;
  if (end < text_.size() && text_[end] != ' ' && text_[end] != '\n') return false;
  position_ = end;
  return true;
}

void TextReader::expect(const std::string& token) {
  if (!accept(token)) complain(fmt::format("expected '{}'", token));
}

bool TextReader::at_line_end() { return peek() == '\n' || position_ == text_.size(); }

void TextReader::end_line() {
  if (!at_line_end()) complain("expected the end of the line");
  skip_lines();
}

void TextReader::skip_lines() {
  while (peek() == '\n') ++position_;
}

bool TextReader::at_end() {
  skip_lines();
  return position_ == text_.size();
}

std::string TextReader::word(const char* what, const std::string& others) {
  const size_t start = position();
  while (position_ < text_.size() &&
         (std::isalnum(byte()) || others.find(text_[position_]) != std::string::npos)) {
    ++position_;
  }
  if (start == position_) complain(fmt::format("expected {}", what));
  return text_.substr(start, position_ - start);
}

std::string TextReader::quoted() {
  const size_t start = position();
  expect("\"");
  std::string result;
  while (position_ < text_.size() && text_[position_] != '"') {
    char c = text_[position_++];
    if (c == '\\' && position_ < text_.size()) {
      c = text_[position_++];
      if (c == 'n') c = '\n';
    }
    result += c;
  }
  if (position_ == text_.size()) complain("the text in quotes does not end", start);
  ++position_;
  return result;
}

std::string TextReader::number() { return word("a number", "+-."); }

int64_t TextReader::integer() {
  const size_t start = position();
  const std::string digits = number();
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [next, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || next != end) {
    complain(fmt::format("'{}' is not a whole number of 64 bits", digits), start);
  }
  return value;
}

double TextReader::real() {
  const size_t start = position();
  const std::string text = number();
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (*end != 0) complain(fmt::format("'{}' is not a number", text), start);
  return value;
}

std::vector<int64_t> TextReader::integers() {
  std::vector<int64_t> result;
  expect("[");
  while (!accept("]")) {
    if (!result.empty()) expect(",");
    result.push_back(integer());
  }
  return result;
}

}  // namespace ballast
