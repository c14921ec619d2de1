#include "device/stitch_source.h"

#include "device/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace ballast::device {

const char* const kIdParameters =
    "const size_t _bg0, const size_t _bg1, const size_t _bg2, const size_t _bl0, const size_t "
    "_bl1, "
    "const size_t _bl2, const size_t _bs0, const size_t _bs1, const size_t _bs2, const size_t "
    "_bn0, "
    "const size_t _bn1, const size_t _bn2";

// A text with `restrict` dropped, id queries along constant dimensions replaced by parameters and
// pointers made to alias (see StitchUnit), and the names that are left in it.
struct Rewritten {
  std::string text;
  std::set<std::string> names;
  std::set<std::string> aliased;  // element types of pointers
  bool has_replaced_ids = false;

  explicit Rewritten(const std::string& from) {
    replace_words(from, &text, [&](std::string_view view, size_t* end) {
      const std::string word(view);
      if (word == "restrict" || word == "__restrict" || word == "__restrict__") return;
      if (add_element_type(word, from, *end)) return;
      const std::string replacement = id_parameter(word, from, end);
      text += replacement.empty() ? word : replacement;
      if (replacement.empty()) {
        names.insert(word);
      } else {
        has_replaced_ids = true;
      }
    });
  }

  bool has_id_query() const {
    return has_prefix("get_global_") || has_prefix("get_local_") || has_prefix("get_group_") ||
           has_prefix("get_num_groups") || has_prefix("get_enqueued_");
  }
  bool has_barrier() const { return std::any_of(names.begin(), names.end(), is_barrier); }

 private:
  bool has_prefix(const std::string& prefix) const {
    const auto at = names.lower_bound(prefix);
    return at != names.end() && at->compare(0, prefix.size(), prefix) == 0;
  }

  // "float *" becomes "_ba_float *".
  bool add_element_type(std::string word, const std::string& from, size_t end) {
    static const std::set<std::string> types = {"char", "uchar", "short",  "ushort",
                                                "int",  "uint",  "long",   "ulong",
                                                "half", "float", "double", "bool"};
    const size_t next = from.find_first_not_of(" \t\r\n", end);
    if (next == std::string::npos || from[next] != '*' || types.count(word) == 0) return false;
    constexpr std::string_view kUnsigned = "unsigned ";
    if (text.size() >= kUnsigned.size() &&
        text.compare(text.size() - kUnsigned.size(), kUnsigned.size(), kUnsigned) == 0) {
      text.resize(text.size() - kUnsigned.size());
      word = "u" + word;
    }
    text.append(kAliasingPrefix).append(word);
    aliased.insert(word);
    return true;
  }

  // What stands for `word` and the "(d)" at *end, which it skips; empty if it is no such query.
  static std::string id_parameter(const std::string& word, const std::string& from, size_t* end) {
    static const std::map<std::string, const char*> queries = {
        {"get_group_id", "_bg{0}"},
        {"get_local_id", "_bl{0}"},
        {"get_local_size", "_bs{0}"},
        {"get_num_groups", "_bn{0}"},
        {"get_global_id", "(_bg{0} * _bs{0} + _bl{0})"},
        {"get_global_size", "(_bn{0} * _bs{0})"}};
    const auto query = queries.find(word);
    if (query == queries.end()) return {};
    const std::optional<char> dimension = constant_dimension(from, end);
    if (!dimension) return {};
    return fmt::format(fmt::runtime(query->second), *dimension);
  }
};

void StitchUnit::add(const Source& source) {
  const auto [entry, is_new] = sources_.try_emplace(source.id);
  if (!is_new) return;
  const std::string prefix = fmt::format("_bk{}_", sources_.size());
  for (const std::string& item : top_level_items(without_comments(source.text))) {
    if (item[0] == '#') {
      text_ += item + "\n";
    } else if (is_kernel(item)) {
      add_kernel(item, prefix, &entry->second);
    } else {
      add_declaration(item);
    }
  }
}

namespace {

// What a declaration declares: a function's name stands before its first parenthesis, another's
// before '=', '[' or ';'. The whole of a declaration without a name.
std::string declared_name(const std::string& item) {
  const std::string start = without_attributes(item.substr(0, item.find('{')));
  for (size_t mark = 0; (mark = start.find_first_of("(=[;", mark)) != std::string::npos; ++mark) {
    const std::string_view name = last_word(std::string_view(start).substr(0, mark));
    if (!name.empty()) return std::string(name);
  }
  return item;
}

}  // namespace

// Functions and types around the kernels: kept once where sources share them.
void StitchUnit::add_declaration(const std::string& item) {
  const Rewritten scanned(item);
  if (scanned.has_replaced_ids || scanned.has_id_query() || scanned.has_barrier()) {
    throw TextRefusal{"a helper function asks for work-item ids or has a barrier"};
  }
  const std::string name = declared_name(item);
  const auto [known, is_new] = declarations_.emplace(name, item);
  if (is_new) {
    add_text(scanned);
    text_ += "\n";
  } else if (known->second != item) {
    throw TextRefusal{fmt::format("two sources define {} differently", name)};
  }
}

void StitchUnit::add_kernel(const std::string& item, const std::string& prefix,
                            std::map<std::string, KernelFunction>* kernels) {
  const size_t open = std::min(item.find('{'), item.size());
  const KernelHead head(item.substr(0, open));
  const Rewritten body(item.substr(open));
  if (body.has_id_query()) {
    throw TextRefusal{fmt::format("{} asks for an id along a computed dimension", head.name)};
  }
  KernelFunction function;
  function.name = prefix + head.name;
  function.needs_one_item_groups = body.has_barrier();
  function.parameters = parse_parameters(head.parameters);
  for (const KernelParameter& parameter : function.parameters) {
    // A __local parameter counts where the body uses it; Halide always passes one.
    if (parameter.is_local && body.names.count(parameter.name) != 0) {
      function.needs_one_item_groups = true;
    }
  }
  // Inlined, the constants that one kernel keeps out of its loops would hold registers in the loops
  // of all. Not every OpenCL takes a barrier in a function that is called.
  text_ += fmt::format("static {} void {}({}{}",
                       function.needs_one_item_groups ? "inline" : kCalled.name, function.name,
                       kIdParameters, function.parameters.empty() ? "" : ", ");
  add_text(Rewritten(head.parameters));
  text_ += ") ";
  add_text(body);
  text_ += "\n";
  kernels->emplace(head.name, std::move(function));
}

void StitchUnit::add_text(const Rewritten& part) {
  text_ += part.text;
  aliased_.insert(part.aliased.begin(), part.aliased.end());
}

std::string StitchUnit::text() const {
  std::string typedefs;
  for (const std::string& type : aliased_) {
    typedefs +=
        fmt::format("typedef {0} __attribute__((may_alias)) {1}{0};\n", type, kAliasingPrefix);
  }
  return typedefs + kCalled.definition + text_;
}

const KernelFunction& StitchUnit::kernel(const Source& source, const std::string& entry) const {
  const auto& kernels = sources_.at(source.id);
  const auto found = kernels.find(entry);
  if (found == kernels.end()) throw TextRefusal{fmt::format("no kernel {} in its source", entry)};
  return found->second;
}

}  // namespace ballast::device
