#include "kernels/source/source_names.h"

#include "device/words.h"
#include "kernels/source/replace_text.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace ballast::kernels {
namespace {

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

// Where "__<number>" begins in [from, end), and where it ends; {end, end} where there is none.
std::pair<size_t, size_t> find_number(const std::string& text, size_t from, size_t end) {
  for (size_t at = from; at + 2 < end; ++at) {
    if (text[at] != '_' || text[at + 1] != '_' || !is_digit(text[at + 2])) continue;
    size_t last = at + 2;
    while (last < end && is_digit(text[last])) ++last;
    if (last == end || text[last] == '_') return {at, last};
  }
  return {end, end};
}

// The numbers that follow each name in the text, in their order; among them 0 where the name stands
// alone too, as that of a buffer or in that of a loop.
using Numbers = std::map<std::string, std::set<int>>;
Numbers numbers_in(const std::string& text) {
  Numbers numbers;
  std::set<std::string> plain;
  device::for_each_word(text, [&](size_t begin, size_t end) {
    const auto [at, last] = find_number(text, begin, end);
    if (at < end) {
      numbers[text.substr(begin, at - begin)].insert(std::stoi(text.substr(at + 2, last - at - 2)));
    } else {
      plain.insert(text.substr(begin, end - begin));
    }
  });
  for (auto& [name, all] : numbers) {
    const std::string loop = name + "_s";
    const auto found = plain.lower_bound(loop);
    const bool has_loop = found != plain.end() && found->compare(0, loop.size(), loop) == 0 &&
                          found->size() > loop.size() && is_digit((*found)[loop.size()]);
    if (has_loop || plain.count(name) != 0) all.insert(0);
  }
  return numbers;
}

// "_12": a value; "_V12": a vector that is gathered; "_t12": what the host computed for the kernel.
constexpr const char* kValues[] = {"_", "_V", "_t"};
bool is_value(std::string_view text, size_t begin, size_t end, std::string_view prefix) {
  return device::is_numbered(text.substr(begin, end - begin), prefix);
}

void renumber_values(std::string& text, const std::string& prefix) {
  std::map<int, int> ranks;
  const auto number_at = [&](size_t begin, size_t end) {
    const size_t digits = begin + prefix.size();
    return std::stoi(text.substr(digits, end - digits));
  };
  device::for_each_word(text, [&](size_t begin, size_t end) {
    if (is_value(text, begin, end, prefix)) ranks[number_at(begin, end)] = 0;
  });
  int rank = 0;
  for (auto& entry : ranks) entry.second = rank++;
  Replacements values(text);
  device::for_each_word(text, [&](size_t begin, size_t end) {
    if (!is_value(text, begin, end, prefix)) return;
    values.replace(begin + prefix.size(), end, std::to_string(ranks.at(number_at(begin, end))));
  });
  values.apply();
}

// The name without its parts that are numbers, and the underscores before each.
std::string without_numbers(const std::string& name) {
  std::string plain;
  for (size_t begin = 0; begin < name.size();) {
    const size_t part = std::min(name.find_first_not_of('_', begin), name.size());
    const size_t end = std::min(name.find('_', part), name.size());
    const bool is_number =
        part > begin && end > part && std::all_of(&name[part], &name[end], is_digit);
    if (!is_number) plain.append(name, begin, end - begin);
    begin = end;
  }
  return plain;
}

// Takes the numbers out of the kernel's name. Halide has two ways to put them in, the second where
// a hash of the name was seen before: "_kernel_out__12_s0_x", "_kernel_out_12_s0_x__1".
void rename_kernel(std::string& text) {
  const std::string name = kernel_name_in(text);
  if (name.empty()) return;
  const std::string plain = without_numbers(name);
  Replacements names(text);
  device::for_each_word(text, [&](size_t begin, size_t end) {
    if (text.compare(begin, end - begin, name) == 0) names.replace(begin, end, plain);
  });
  names.apply();
}

}  // namespace

void renumber_names(std::string& text) {
  replace_all(text, "$", "__");  // so Halide writes its names in comments
  rename_kernel(text);
  for (const char* prefix : kValues) renumber_values(text, prefix);
  const Numbers numbers = numbers_in(text);
  Replacements renumbered(text);
  device::for_each_word(text, [&](size_t begin, size_t end) {
    const auto [at, last] = find_number(text, begin, end);
    if (at == end) return;
    const std::set<int>& all = numbers.at(text.substr(begin, at - begin));
    const int number = std::stoi(text.substr(at + 2, last - at - 2));
    const auto rank = std::distance(all.begin(), all.find(number));
    renumbered.replace(at, last, rank == 0 ? "" : "__" + std::to_string(rank));
  });
  renumbered.apply();
}

std::string kernel_name_in(std::string_view text) {
  constexpr std::string_view kKernel = "__kernel void ";
  const size_t found = text.find(kKernel), begin = found + kKernel.size();
  if (found == std::string_view::npos) return {};
  return std::string(text.substr(begin, text.find('(', begin) - begin));
}

}  // namespace ballast::kernels
