#include "kernels/source/source_items.h"

#include "kernels/source/replace_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace ballast::kernels {
namespace {

constexpr std::string_view kOfItem = "_of_item_", kAhead = "_ahead_of_item_",
                           kInTurns = "_in_turns", kInRegisters = "_in_registers_";
constexpr std::string_view kProduce = "// produce ", kConsume = "// consume ",
                           kBarrier = "barrier(", kLoop = "for (int ";

bool has(const std::string& line, std::string_view word) {
  return line.find(word) != std::string::npos;
}
bool is_fetch(const std::string& line) { return has(line, kProduce) && has(line, kAhead); }

// Of lines "int _12 = ...", those that compute places, which what follows may use too: of no type
// of operands, or of none that was loaded.
class Places {
 public:
  bool is_place(const std::string& line) {
    const size_t begin = std::min(line.find_first_not_of(' '), line.size());
    const size_t space = line.find(' ', begin), equals = line.find(" = ", begin);
    if (space == std::string::npos || equals == std::string::npos) return false;
    const std::string type = line.substr(begin, space - begin);
    if (type == "int" || type == "bool") return true;
    if (type != "float" && type != "uint") return false;
    bool is_loaded = line.find('[', equals) != std::string::npos;
    for (size_t at = equals; (at = line.find('_', at)) != std::string::npos;) {
      const size_t end = std::min(line.find_first_of(" ;),*", at), line.size());
      is_loaded = is_loaded || loaded_.count(line.substr(at, end - at)) > 0;
      at = end;
    }
    if (is_loaded) loaded_.insert(line.substr(space + 1, equals - space - 1));
    return !is_loaded;
  }

 private:
  std::set<std::string> loaded_;
};

// A loop's lines: its header, then from its opening brace to the one that closes it.
struct Loop {
  size_t header, end;
};

// The innermost loop around a line, where there is one: a single iteration needs none.
std::optional<Loop> loop_around(const Lines& lines, size_t at) {
  const auto indent = [&](size_t i) { return lines[i].find_first_not_of(' '); };
  size_t header = at;
  while (header > 0 && !(has(lines[header], kLoop) && indent(header) < indent(at))) --header;
  if (header == 0) return std::nullopt;
  size_t end = header + 2;
  while (lines[end].compare(indent(header), 1, "}") != 0 || indent(end) != indent(header)) ++end;
  return Loop{header, end};
}

// "for (int k = 0; k < n; k++)": k, and n, which no iteration reaches.
std::string counter_of(const std::string& header) {
  const size_t name = header.find(kLoop) + kLoop.size();
  return header.substr(name, header.find(' ', name) - name);
}
std::string end_of(const std::string& header) {
  constexpr std::string_view kBelow = " < ";
  const size_t end = header.find(kBelow) + kBelow.size();
  return header.substr(end, header.find(';', end) - end);
}

// The loop's fetches in front of it, and where others begin to work with what was fetched. What the
// loop computes before the first of them comes along: they may be made of it. Of the barriers until
// there, while items only store what they have, the last is enough if another one follows. The last
// iteration fetches for itself again: Halide knows how far the loop goes and may have left out what
// keeps places of the next in their operand.
void fetch_ahead_in(Lines& lines, const Loop& loop) {
  const std::string counter = counter_of(lines[loop.header]), end = end_of(lines[loop.header]);
  Lines before, after, fetched;
  Places places;
  size_t i = loop.header + 2;
  while (!is_fetch(lines[i])) before.push_back(lines[i++]);
  fetched = before;
  std::vector<size_t> barriers;
  while (!has(lines[i], kConsume) || has(lines[i], kAhead)) {
    if (is_fetch(lines[i])) {
      fetched.push_back(lines[i++]);
      fetched.push_back("{");
      for (; !has(lines[i], kBarrier) && !has(lines[i], kProduce); ++i) {
        fetched.push_back(lines[i]);
        if (places.is_place(lines[i])) before.push_back(lines[i]);
      }
      fetched.push_back("}");
    } else {
      if (has(lines[i], kBarrier)) barriers.push_back(before.size());
      before.push_back(lines[i++]);
    }
  }
  after.assign(lines.begin() + static_cast<ptrdiff_t>(i),
               lines.begin() + static_cast<ptrdiff_t>(loop.end));
  const auto is_barrier = [](const std::string& line) { return has(line, kBarrier); };
  if (!barriers.empty() && std::any_of(after.begin(), after.end(), is_barrier)) {
    barriers.pop_back();
    for (const size_t barrier : barriers) before[barrier].clear();
  }
  if (std::any_of(before.begin(), before.end(),
                  [](const std::string& line) { return has(line, kInTurns); })) {
    const auto last = std::find_if(after.rbegin(), after.rend(), is_barrier);
    if (last != after.rend()) last->clear();
  }
  const auto fetched_for = [&](const std::string& iteration) {
    Lines scope = {"{", fmt::format("int fetched_for = {};", iteration), "{",
                   fmt::format("int {} = fetched_for;", counter)};
    scope.insert(scope.end(), fetched.begin(), fetched.end());
    scope.insert(scope.end(), {"}", "}"});
    return scope;
  };
  Lines result(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(loop.header));
  const auto append = [&](const Lines& more) {
    result.insert(result.end(), more.begin(), more.end());
  };
  append(fetched_for("0"));
  append({lines[loop.header], lines[loop.header + 1]});
  append(before);
  append(fetched_for(fmt::format("min({} + 1, {} - 1)", counter, end)));
  append(after);
  append(Lines(lines.begin() + static_cast<ptrdiff_t>(loop.end), lines.end()));
  lines = std::move(result);
}

// Of "((space float4 *)name)[...]", whose bracket is there: 4; of "name[...]", 1.
int lanes_of_access(const std::string& text, size_t bracket) {
  constexpr std::string_view kCast = " *)";
  if (text[bracket - 1] != ')') return 1;
  const size_t type_end = text.rfind(kCast, bracket);
  const size_t digits = text.find_last_not_of("0123456789", type_end - 1) + 1;
  return std::max(std::atoi(&text[digits]), 1);
}

}  // namespace

void shorten_vector_places(std::string& text) {
  if (!has(text, kOfItem)) return;
  Lines lines = lines_of(text);
  // By name: what is multiplied by 4, and the sum of such a product and a multiple of 4.
  std::map<std::string, std::string> quadruples, sums;
  for (std::string& line : lines) {
    if (line.compare(std::min(line.find_first_not_of(' '), line.size()), 5, "int _") != 0) continue;
    const size_t equals = line.find(" = "), space = line.find(' ', equals + 3);
    const std::string name = declared_at(line, 0).name;
    if (space == std::string::npos) continue;
    const std::string first = line.substr(equals + 3, space - equals - 3),
                      rest = line.substr(space, line.size() - space - 1);
    if (rest == " * 4") quadruples[name] = first;
    if (rest.compare(0, 3, " + ") == 0 && quadruples.count(first) != 0 &&
        rest.find_first_not_of("0123456789", 3) == std::string::npos) {
      const int added = std::atoi(&rest[3]);
      if (added % 4 == 0) sums[name] = fmt::format("{} + {}", quadruples.at(first), added / 4);
    }
    if (rest == " >> 2" && sums.count(first) != 0) {
      line = fmt::format("{}{};", line.substr(0, equals + 3), sums.at(first));
    }
  }
  text = text_of(lines);
}

void keep_items_apart(std::string& text) {
  Replacements own(text);
  for (size_t at = 0; (at = text.find(kOfItem, at)) != std::string::npos;) {
    at += kOfItem.size();
    const int count = std::atoi(&text[at]);
    const size_t bracket = text.find_first_of("[;, \n", at);
    if (count == 0 || text[bracket] != '[') continue;
    const size_t close = text.find(']', bracket), line = text.rfind('\n', at) + 1;
    const bool is_declaration = text.find(" = ", line) > close + 1 && text[close + 1] == ';';
    const std::string index = text.substr(bracket + 1, close - bracket - 1);
    const int places = count / lanes_of_access(text, bracket);
    at = close;
    own.replace(
        bracket + 1, close,
        is_declaration ? std::to_string(count) : fmt::format("({}) & {}", index, places - 1));
  }
  own.apply();
}

void fetch_ahead(std::string& text) {
  if (!has(text, kAhead)) return;
  Lines lines = lines_of(text);
  // A loop that is done has its fetches deeper, in scopes without an indentation.
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!is_fetch(lines[i])) continue;
    const std::optional<Loop> loop = loop_around(lines, i);
    if (!loop) return;
    const size_t after = lines.size() - loop->end;
    fetch_ahead_in(lines, *loop);
    i = lines.size() - after;
  }
  text = text_of(lines);
}

void ask_for_registers(std::string& text) {
  const size_t at = text.find(kInRegisters);
  if (at == std::string::npos) return;
  text.insert(
      0, fmt::format("#pragma ballast registers {}\n", std::atoi(&text[at + kInRegisters.size()])));
}

}  // namespace ballast::kernels
