#include "kernels/source_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

namespace ballast::kernels {
namespace {

using Lines = std::vector<std::string>;

constexpr std::string_view kOfItem = "_of_item_", kAhead = "_ahead_of_item_";
constexpr std::string_view kProduce = "// produce ", kBarrier = "barrier(", kLoop = "for (int ";

bool has(const std::string& line, std::string_view word) {
  return line.find(word) != std::string::npos;
}
bool is_fetch(const std::string& line) { return has(line, kProduce) && has(line, kAhead); }

Lines lines_of(const std::string& text) {
  Lines lines;
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

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

std::string counter_of(const std::string& header) {
  const size_t name = header.find(kLoop) + kLoop.size();
  return header.substr(name, header.find(' ', name) - name);
}

// The loop's fetches in front of it and after its last barrier. What the loop computes before the
// first of them comes along: they may be made of it.
void fetch_ahead_in(Lines& lines, const Loop& loop) {
  const std::string counter = counter_of(lines[loop.header]);
  Lines body, first, fetched;
  size_t i = loop.header + 2;
  while (!is_fetch(lines[i])) first.push_back(lines[i++]);
  fetched = first;
  body = first;
  size_t last_barrier = 0;
  while (i < loop.end) {
    if (is_fetch(lines[i])) {
      fetched.push_back(lines[i++]);
      fetched.push_back("{");
      while (!has(lines[i], kBarrier) && !has(lines[i], kProduce)) fetched.push_back(lines[i++]);
      fetched.push_back("}");
    } else {
      if (has(lines[i], kBarrier)) last_barrier = body.size() + 1;
      body.push_back(lines[i++]);
    }
  }
  const auto fetched_for = [&](const std::string& iteration) {
    Lines scope = {"{", fmt::format("int fetched_for = {};", iteration), "{",
                   fmt::format("int {} = fetched_for;", counter)};
    scope.insert(scope.end(), fetched.begin(), fetched.end());
    scope.insert(scope.end(), {"}", "}"});
    return scope;
  };
  const Lines next = fetched_for(counter + " + 1"), zeroth = fetched_for("0");
  body.insert(body.begin() + static_cast<ptrdiff_t>(last_barrier), next.begin(), next.end());
  Lines result(lines.begin(), lines.begin() + static_cast<ptrdiff_t>(loop.header));
  const auto append = [&](const auto& begin, const auto& end) {
    result.insert(result.end(), begin, end);
  };
  append(zeroth.begin(), zeroth.end());
  append(lines.begin() + static_cast<ptrdiff_t>(loop.header),
         lines.begin() + static_cast<ptrdiff_t>(loop.header) + 2);
  append(body.begin(), body.end());
  append(lines.begin() + static_cast<ptrdiff_t>(loop.end), lines.end());
  lines = std::move(result);
}

}  // namespace

void keep_items_apart(std::string& text) {
  for (size_t at = 0; (at = text.find(kOfItem, at)) != std::string::npos;) {
    at += kOfItem.size();
    const int count = std::atoi(&text[at]);
    const size_t bracket = text.find_first_of("[;, \n", at);
    if (count == 0 || text[bracket] != '[') continue;
    const size_t close = text.find(']', bracket), line = text.rfind('\n', at) + 1;
    const bool is_declaration = text.find(" = ", line) > close + 1 && text[close + 1] == ';';
    const std::string index = text.substr(bracket + 1, close - bracket - 1);
    text.replace(
        bracket + 1, index.size(),
        is_declaration ? std::to_string(count) : fmt::format("({}) & {}", index, count - 1));
  }
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
  text.clear();
  for (const std::string& line : lines) text += line + '\n';
}

}  // namespace ballast::kernels
