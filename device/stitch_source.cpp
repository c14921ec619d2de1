#include "device/stitch_source.h"

#include <fmt/format.h>

#include <regex>
#include <utility>

namespace ballast::device {

const char* const kIdParameters =
    "const size_t _bg0, const size_t _bg1, const size_t _bg2, const size_t _bl0, const size_t "
    "_bl1, "
    "const size_t _bl2, const size_t _bs0, const size_t _bs1, const size_t _bs2, const size_t "
    "_bn0, "
    "const size_t _bn1, const size_t _bn2";

namespace {

// Comments become one space, so that braces and names in them mean nothing.
std::string without_comments(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {
      i = text.find('\n', i);
    } else if (text.compare(i, 2, "/*") == 0) {
      const size_t end = text.find("*/", i + 2);
      out += ' ';
      i = end == std::string::npos ? end : end + 2;
    } else {
      out += text[i++];
    }
    if (i == std::string::npos) break;
  }
  return out;
}

// Top-level pieces in order: preprocessor lines, and declarations or definitions up to their last
// ';' or '}'.
std::vector<std::string> top_level_items(const std::string& text) {
  std::vector<std::string> items;
  size_t i = 0;
  while ((i = text.find_first_not_of(" \t\r\n", i)) != std::string::npos) {
    const size_t start = i;
    if (text[i] == '#') {
      do {
        i = text.find('\n', i + 1);
      } while (i != std::string::npos && text[i - 1] == '\\');
      if (i == std::string::npos) i = text.size();
    } else {
      int braces = 0;
      for (bool done = false; !done; ++i) {
        if (i == text.size()) throw StitchRefusal{"a source ends inside a declaration"};
        if (text[i] == '{') ++braces;
        if (text[i] == '}') --braces;
        // An initializer's or a struct's '}' is followed by ';', which ends the piece.
        const size_t next = text.find_first_not_of(" \t\r\n", i + 1);
        const bool has_semicolon = next != std::string::npos && text[next] == ';';
        done = braces == 0 && (text[i] == ';' || (text[i] == '}' && !has_semicolon));
      }
    }
    items.push_back(text.substr(start, i - start));
  }
  return items;
}

std::string replace_all(const std::string& text, const char* pattern, const char* replacement) {
  return std::regex_replace(text, std::regex(pattern), replacement);
}

bool mentions(const std::string& text, const char* pattern) {
  return std::regex_search(text, std::regex(pattern));
}

constexpr const char* kIdQuery =
    R"(\bget_(?:group_id|local_id|global_id|local_size|num_groups|global_size|global_offset|work_dim|enqueued_local_size|global_linear_id|local_linear_id)\b)";
constexpr const char* kBarrier = R"(\b(?:barrier|work_group_barrier|async_work_group_\w+)\s*\()";

std::string with_ids_replaced(std::string text) {
  text = replace_all(text, R"(\bget_group_id\s*\(\s*([012])\s*\))", "_bg$1");
  text = replace_all(text, R"(\bget_local_id\s*\(\s*([012])\s*\))", "_bl$1");
  text = replace_all(text, R"(\bget_local_size\s*\(\s*([012])\s*\))", "_bs$1");
  text = replace_all(text, R"(\bget_num_groups\s*\(\s*([012])\s*\))", "_bn$1");
  text = replace_all(text, R"(\bget_global_id\s*\(\s*([012])\s*\))", "(_bg$1 * _bs$1 + _bl$1)");
  text = replace_all(text, R"(\bget_global_size\s*\(\s*([012])\s*\))", "(_bn$1 * _bs$1)");
  return replace_all(text, R"(\b(?:restrict|__restrict|__restrict__)\b)", "");
}

KernelParameter parse_parameter(const std::string& text) {
  KernelParameter parameter;
  parameter.is_pointer = text.find('*') != std::string::npos;
  std::string type =
      replace_all(text, R"(\b(?:const|volatile|__\w+|global|local|constant|private)\b)", " ");
  if (parameter.is_pointer) {
    type = type.substr(0, type.find('*'));
  } else {
    type = replace_all(type, R"(\b\w+\s*$)", "");  // the name
  }
  parameter.type = replace_all(replace_all(type, R"(^\s+|\s+$)", ""), R"(\s+)", " ");
  return parameter;
}

std::vector<std::string> split_parameters(const std::string& list) {
  std::vector<std::string> parts;
  if (!mentions(list, R"(\S)")) return parts;
  for (size_t from = 0; from <= list.size();) {
    const size_t comma = std::min(list.find(',', from), list.size());
    parts.push_back(list.substr(from, comma - from));
    from = comma + 1;
  }
  return parts;
}

}  // namespace

void StitchUnit::add(const Source& source) {
  const auto [entry, is_new] = sources_.try_emplace(source.id);
  if (!is_new) return;
  const std::string prefix = fmt::format("_bk{}_", sources_.size());
  for (const std::string& item : top_level_items(without_comments(source.text))) {
    if (item[0] == '#') {
      text_ += item + "\n";
    } else if (mentions(item, R"(^(?:__)?kernel\b)")) {
      add_kernel(item, prefix, &entry->second);
    } else {
      add_declaration(item);
    }
  }
}

// Functions and types around the kernels: kept once where sources share them.
void StitchUnit::add_declaration(const std::string& item) {
  if (mentions(item, kIdQuery) || mentions(item, kBarrier)) {
    throw StitchRefusal{"a helper function asks for work-item ids or has a barrier"};
  }
  std::smatch match;
  std::string name = item;
  // A function's name stands before its first parenthesis, another declaration's before '=', '['
  // or ';'.
  if (std::regex_search(item, match, std::regex(R"((\w+)\s*[(=\[;])"))) name = match[1];
  const auto [known, is_new] = declarations_.emplace(name, item);
  if (is_new) {
    text_ += item + "\n";
  } else if (known->second != item) {
    throw StitchRefusal{fmt::format("two sources define {} differently", name)};
  }
}

void StitchUnit::add_kernel(const std::string& item, const std::string& prefix,
                            std::map<std::string, KernelFunction>* kernels) {
  const std::string plain = replace_all(item, R"(__attribute__\s*\(\(.*?\)\))", "");
  std::smatch match;
  if (!std::regex_search(plain, match,
                         std::regex(R"(^(?:__)?kernel\s+void\s+(\w+)\s*\(([^()]*)\)\s*\{)"))) {
    throw StitchRefusal{"a kernel's head is not \"__kernel void name(parameters) {\""};
  }
  const std::string entry = match[1];
  std::string parameters = match[2];
  const std::string body = with_ids_replaced(plain.substr(match.length(0)));
  if (mentions(body, kIdQuery)) {
    throw StitchRefusal{fmt::format("{} asks for an id along a computed dimension", entry)};
  }
  KernelFunction function;
  function.name = prefix + entry;
  function.needs_one_item_groups = mentions(body, kBarrier);
  for (const std::string& text : split_parameters(parameters)) {
    function.parameters.push_back(parse_parameter(text));
    std::smatch name;
    if (mentions(text, R"(\b(?:__)?local\b)") &&
        std::regex_search(text, name, std::regex(R"((\w+)\s*$)")) &&
        mentions(body, fmt::format(R"(\b{}\b)", name.str(1)).c_str())) {
      function.needs_one_item_groups = true;
    }
  }
  parameters = with_ids_replaced(parameters);
  text_ += fmt::format("static inline void {}({}{}{}) {{{}\n", function.name, kIdParameters,
                       function.parameters.empty() ? "" : ", ", parameters, body);
  kernels->emplace(entry, std::move(function));
}

const KernelFunction& StitchUnit::kernel(const Source& source, const std::string& entry) const {
  const auto& kernels = sources_.at(source.id);
  const auto found = kernels.find(entry);
  if (found == kernels.end()) throw StitchRefusal{fmt::format("no kernel {} in its source", entry)};
  return found->second;
}

}  // namespace ballast::device
