// The words of a program's text: names, keywords and numbers of OpenCL C and of what resembles it.
// By hand, where regular expressions would do: kernels have up to a megabyte of unrolled code, for
// which std::regex is slow and runs out of stack.
#pragma once

#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace ballast::device {

inline bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Where the word that begins at `begin` ends; `begin` itself where none does.
inline size_t end_of_word(std::string_view text, size_t begin) {
  while (begin < text.size() && is_of_word(text[begin])) ++begin;
  return begin;
}

// The word that ends at `end`; empty where none does.
inline std::string_view word_before(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && is_of_word(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

// Where the blanks begin that the text ends with.
inline size_t end_before_blanks(std::string_view text) {
  size_t end = text.size();
  while (end > 0 && std::isspace(static_cast<unsigned char>(text[end - 1])) != 0) --end;
  return end;
}

// The word that the text ends with, before blanks; empty where another thing does.
inline std::string_view last_word(std::string_view text) {
  return word_before(text, end_before_blanks(text));
}

// Whether the word is `prefix` and a number: "s12".
inline bool is_numbered(std::string_view word, std::string_view prefix) {
  return word.size() > prefix.size() && word.substr(0, prefix.size()) == prefix &&
         word.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

// Calls f(begin, end) for every word.
template <class F>
void for_each_word(std::string_view text, F f) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = end_of_word(text, begin);
    if (end > begin) f(begin, end);
    begin = end + 1;
  }
}

// Adds the text to *out but for its words: f(word, &end), where the word ends in the text, adds
// what stands for it and may skip what follows.
template <class F>
void replace_words(std::string_view text, std::string* out, F f) {
  for (size_t i = 0; i < text.size();) {
    const size_t start = i;
    i = end_of_word(text, i);
    if (i > start) {
      f(text.substr(start, i - start), &i);
    } else {
      *out += text[i++];
    }
  }
}

inline std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for_each_word(
      text, [&](size_t begin, size_t end) { words.push_back(text.substr(begin, end - begin)); });
  return words;
}

}  // namespace ballast::device
