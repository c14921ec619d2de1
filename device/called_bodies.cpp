#include "device/called_bodies.h"

#include "device/kernel_parameter.h"
#include "device/program_text.h"
#include "device/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace ballast::device {
namespace {

// A kernel's body with what it asks for in place of the queries.
struct Body {
  std::string text;
  std::map<std::string, std::string> ids;  // "_bg0": "get_group_id(0)"
  bool may_be_called = true;

  explicit Body(std::string_view from) {
    replace_words(from, &text, [&](std::string_view word, size_t* end) {
      const std::string id = id_of(word, from, end);
      if (id.empty() && is_in_the_way(word)) may_be_called = false;
      text.append(id.empty() ? word : id);
    });
  }

 private:
  // The parameter that stands for the word and the dimension at *end, which it skips; empty if
  // they are no such query.
  std::string id_of(std::string_view word, std::string_view from, size_t* end) {
    const bool is_group = word == "get_group_id";
    if (!is_group && word != "get_local_id") return {};
    const std::optional<char> dimension = constant_dimension(from, end);
    if (!dimension) return {};
    const std::string name = std::string(is_group ? "_bg" : "_bl") + *dimension;
    ids[name] = fmt::format("{}({})", word, *dimension);
    return name;
  }

  // Other ids, barriers and local memory that is declared, before which no parenthesis opens a
  // cast.
  bool is_in_the_way(std::string_view word) const {
    const bool is_local = word == "local" || word == "__local";
    const size_t before = is_local ? end_before_blanks(text) : 0;
    const bool is_cast = before > 0 && text[before - 1] == '(';
    return word.substr(0, 4) == "get_" || is_barrier(word) || (is_local && !is_cast);
  }
};

std::string with_called_body(const std::string& kernel) {
  const size_t open = std::min(kernel.find('{'), kernel.size());
  const std::string head_text = kernel.substr(0, open);
  const KernelHead head(head_text);
  const std::vector<KernelParameter> parameters = parse_parameters(head.parameters);
  const Body body(std::string_view(kernel).substr(open));
  if (!body.may_be_called) return kernel;
  std::vector<std::string> declared, given;
  for (const auto& [name, query] : body.ids) {
    declared.push_back("const size_t " + name);
    given.push_back(query);
  }
  for (const KernelParameter& parameter : parameters) {
    declared.push_back(parameter.text);
    given.push_back(parameter.name);
  }
  return fmt::format("static {} void _body_{}({}) {}\n{} {{ _body_{}({}); }}", kCalled.name,
                     head.name, fmt::join(declared, ","), body.text, head_text, head.name,
                     fmt::join(given, ", "));
}

}  // namespace

std::string call_bodies(const std::string& text) {
  std::string out = kCalled.definition;
  try {
    for (const std::string& item : top_level_items(without_comments(text))) {
      out.append(is_kernel(item) ? with_called_body(item) : item).append("\n");
    }
  } catch (const TextRefusal&) {
    return text;
  }
  return out;
}

}  // namespace ballast::device
