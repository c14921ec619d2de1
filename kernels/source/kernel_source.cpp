// Adapts the OpenCL source that Halide wrote: see SourceRules in halide_runtime.h.
#include "kernels/plan/halide_runtime.h"

#include "device/words.h"
#include "kernels/source/replace_text.h"
#include "kernels/source/source_functions.h"
#include "kernels/source/source_items.h"
#include "kernels/source/source_names.h"
#include "kernels/source/source_places.h"

#include <fmt/format.h>

#include <cctype>
#include <set>
#include <vector>

namespace ballast::kernels {
namespace {

using device::Code;
using device::fail;

// Halide accesses its private arrays as whole vectors, but declares them as arrays of scalars.
void align_private_arrays(std::string& text) {
  constexpr std::string_view kAlign = " __attribute__((aligned(64)))";
  for (size_t at = 0; (at = text.find("];\n", at)) != std::string::npos; ++at) {
    const size_t line = text.rfind('\n', at) + 1;
    const size_t bracket = text.rfind('[', at);
    const size_t name = text.rfind(' ', at) + 1;
    const bool has_digits = text.find_first_not_of("0123456789", bracket + 1) == at;
    const bool has_type = name > line && name < bracket && text.find('=', line) > at;
    if (has_digits && has_type) text.insert(at + 1, kAlign);
  }
}

// "vload16(0, (space type*)base + index)" and "vstore16(value,0, (space type*)base + index);" as
// accesses to a vector of no alignment, and those of 8, 4 and 2 likewise: PoCL's take vectors apart
// and move quarters (a store was three of them and two shuffles).
void access_whole_vectors(std::string& text, int lanes) {
  const std::string load = fmt::format("vload{}(0, (", lanes);
  const std::string store = fmt::format("vstore{}(", lanes);
  std::set<std::string> types;
  // `open`: the parenthesis before the pointer. Up to the one that matches it becomes the access.
  const auto access_at = [&](size_t begin, size_t open) {
    const size_t star = text.find("*)", open), type = text.rfind(' ', star) + 1;
    const size_t end = text.find(");\n", star);
    const std::string name = text.substr(type, star - type) + std::to_string(lanes);
    types.insert(text.substr(type, star - type));
    const std::string access =
        fmt::format("*({} {}_anywhere*)({})", text.substr(open + 1, type - open - 2), name,
                    text.substr(open, end - open));
    text.replace(begin, end + 1 - begin, access);
    return begin + access.size();
  };
  for (size_t at = 0; (at = text.find(load, at)) != std::string::npos;) {
    at = access_at(at, at + load.size() - 1);
  }
  for (size_t at = 0; (at = text.find(store, at)) != std::string::npos;) {
    const size_t value = at + store.size(), comma = text.find(',', value);
    const std::string name = text.substr(value, comma - value);
    at = access_at(at, text.find('(', comma));
    text.insert(at, " = " + name);
  }
  for (const std::string& name : types) {
    text.insert(0, fmt::format("typedef {0}{1} {0}{1}_anywhere "
                               "__attribute__((aligned(sizeof({0}))));\n",
                               name, lanes));
  }
}

constexpr std::string_view kPrefetchMacro =
    "#if defined(__x86_64__) || defined(__aarch64__)\n"
    "#define PREFETCH(pointer) __builtin_prefetch((const void*)(size_t)(pointer))\n"
    "#define PREFETCH_EARLY(pointer) __builtin_prefetch((const void*)(size_t)(pointer), 0, 2)\n"
    "#else\n#define PREFETCH(pointer)\n#define PREFETCH_EARLY(pointer)\n#endif\n";

// Where the line begins that closes the block of `at`.
size_t end_of_block(const std::string& text, size_t at) {
  for (int depth = 0; text[at] != '}' || depth-- > 0; ++at) depth += text[at] == '{';
  return text.rfind('\n', at) + 1;
}

// The hints of hints.h, and the macro that each becomes; late ones where their block ends.
struct PrefetchHint {
  std::string_view call, macro;
  bool is_late = false;
};
constexpr PrefetchHint kPrefetch{"ballast_prefetch(", "PREFETCH"},
    kEarlyPrefetch{"ballast_early_prefetch(", "PREFETCH_EARLY"},
    kLatePrefetch{"ballast_late_prefetch(", "PREFETCH", true};

// "x = CALLvalue, element);" becomes "x = value;", and the access that was `element` a request for
// its memory, where it was or at the end of its block; where the compiler makes code for this CPU
// and not for a simulator.
void prefetch_elements(std::string& text, const PrefetchHint& hint) {
  const auto [call, macro, is_late] = hint;
  if (text.find(call) != std::string::npos) text.insert(0, kPrefetchMacro);
  for (size_t at = 0; (at = text.find(call, at)) != std::string::npos;) {
    const size_t value = at + call.size(), comma = text.find(", ", value);
    const size_t close = text.find(");\n", comma);
    const std::string element = text.substr(comma + 2, close - comma - 2);
    text.replace(at, close + 1 - at, text.substr(value, comma - value));
    const std::string declared = " " + element + " = ";
    const size_t found = text.rfind(declared, at), access = found + declared.size();
    if (found == std::string::npos) continue;
    const size_t line = text.rfind('\n', found) + 1, end = text.find(";\n", line);
    // "*(type*)(place)", or "((type *)base)[place]" where Halide knows that it is aligned; late
    // "base[place]" of a scalar too
    const bool is_vector = text[access] == '*' || text[access] == '(';
    if (!is_vector && !(is_late && text[end - 1] == ']')) continue;
    const std::string request = fmt::format("{}(&{});\n", macro, text.substr(access, end - access));
    text.erase(line, end + 2 - line);
    text.insert(is_late ? end_of_block(text, line) : line, request);
    at = line;
  }
}

// "x = ballast_ask_NAME(value, index);" becomes "x = value;", and a request for the memory of NAME
// from the index, or its first lane, on, unless results go past the caches.
void prefetch_results(std::string& text, bool streams) {
  constexpr std::string_view kCall = "ballast_ask_";
  if (text.find(kCall) != std::string::npos && !streams) text.insert(0, kPrefetchMacro);
  for (size_t at = 0; (at = text.find(kCall, at)) != std::string::npos;) {
    const size_t name = at + kCall.size(), open = text.find('(', name);
    const size_t comma = text.find(", ", open), close = text.find(");\n", comma);
    const std::string result = text.substr(name, open - name);
    const std::string index = text.substr(comma + 2, close - comma - 2);
    const bool is_vector = declared_at(text, at).type.back() == '6';
    text.replace(at, close + 1 - at, text.substr(open + 1, comma - open - 1));
    if (streams) continue;
    text.insert(text.rfind('\n', at) + 1,
                fmt::format(" PREFETCH(_{} + {}{});\n", result, index, is_vector ? ".s0" : ""));
  }
}

// "x = ballast_stream(y);" becomes "x = y;", and "*(vector*)(place) = x;" a store past the caches.
void stream_values(std::string& text) {
  constexpr std::string_view kCall = "ballast_stream(";
  for (size_t at = 0; (at = text.find(kCall, at)) != std::string::npos;) {
    const Declared value = declared_at(text, at);
    text.erase(text.find(");\n", at), 1);
    text.erase(at, kCall.size());
    const std::string stored = fmt::format(" = {};\n", value.name);
    const size_t store = text.find(stored, at), line = text.rfind('\n', store) + 1;
    if (store == std::string::npos) continue;
    const size_t open = text.find_first_not_of(' ', line) + 1;  // after the star
    text.replace(line, store + stored.size() - line,
                 fmt::format(" STREAM({}, {}, {});\n", value.name, value.type,
                             text.substr(open, store - open)));
  }
}

// SourceRules::streams: "*(space type16_anywhere*)(place) = x;" likewise, and
// "((space type16 *)base)[index] = x;", where the space is that of a result of 4-byte elements.
void stream_results(std::string& text) {
  for (const char* type : {"float", "int"}) {
    for (const char* form : {" {}16_anywhere*)(", " {}16 *)"}) {
      const std::string vector = fmt::format(fmt::runtime(form), type);
      for (size_t at = 0; (at = text.find(vector, at)) != std::string::npos;) {
        const size_t line = text.rfind('\n', at) + 1, open = text.find_first_not_of(' ', line);
        const size_t end = text.find(";\n", at), equals = text.find(" = ", at);
        const size_t space = text.find_last_of('(', at) + 1;
        const std::string parameter =
            fmt::format("\n {} {} *restrict ", text.substr(space, at - space), type);
        at = end;
        // A store is all of a line before its equals sign; other lines begin with a type.
        const bool is_store = text[open] == '*' || text[open] == '(';
        if (!is_store || equals > end || text.find(parameter) > open) continue;
        const std::string stream =
            fmt::format("STREAM({}, {}16, &{})", text.substr(equals + 3, end - equals - 3), type,
                        text.substr(open, equals - open));
        text.replace(open, end - open, stream);
        at = open + stream.size();
      }
    }
  }
}

// What STREAM is where the compiler makes code for this CPU. Such stores are in no order with
// others: the kernel ends with a fence, for whoever reads on another core.
void define_streams(std::string& text) {
  constexpr std::string_view kMacros =
      "#if defined(__x86_64__)\n"
      "#define STREAM(value, type, pointer) \\\n"
      "  __builtin_nontemporal_store(value, (__global type*)(pointer))\n"
      "#define STREAMED __builtin_ia32_sfence()\n"
      "#else\n"
      "#define STREAM(value, type, pointer) *(pointer) = value\n"
      "#define STREAMED\n"
      "#endif\n";
  if (text.find(" STREAM(") == std::string::npos) return;
  text.insert(text.rfind('}'), "STREAMED;\n");
  text.insert(0, kMacros);
}

// "vector x = ballast_take_LANES(a, b);" becomes a shuffle to these lanes, numbered by the digits 0
// to 9 and a to v over those of a, then those of b. Of lanes written out one by one, compilers join
// shuffles that follow each other to one of three vectors and more, which no processor has: bytes
// of three channels took 60 instructions instead of 15.
void take_lanes(std::string& text) {
  constexpr std::string_view kCall = "ballast_take_", kLanes = "0123456789abcdefghijklmnopqrstuv";
  for (size_t at = 0; (at = text.find(kCall, at)) != std::string::npos;) {
    const size_t lanes = at + kCall.size(), open = text.find('(', lanes);
    const size_t comma = text.find(", ", open), close = text.find(')', comma);
    const std::string a = text.substr(open + 1, comma - open - 1);
    const std::string b = text.substr(comma + 2, close - comma - 2);
    std::string taken = fmt::format("__builtin_shufflevector({}, {}", a, b);
    for (size_t i = lanes; i < open; ++i) taken += fmt::format(", {}", kLanes.find(text[i]));
    text.replace(at, close - at, taken);
  }
}

// How often `name` is a word of `text`.
size_t count_name(std::string_view text, std::string_view name) {
  const auto goes_on = [&](size_t at) { return at < text.size() && device::is_of_word(text[at]); };
  size_t count = 0;
  for (size_t at = 0; (at = text.find(name, at)) != std::string_view::npos; at += name.size()) {
    count += goes_on(at - 1) || goes_on(at + name.size()) ? 0 : 1;
  }
  return count;
}

// Where the load "vector name = vload16(0, place);" before `at` lies; or
// "((space vector *)base)[index]", where Halide knows that it is aligned.
std::string place_of_load(const std::string& text, size_t at, const std::string& vector,
                          const std::string& lanes, const std::string& name) {
  const std::string declared = fmt::format(" {} {} = ", vector, name);
  const size_t found = text.rfind(declared, at), value = found + declared.size();
  if (found == std::string::npos) fail(Code::kInternal, "[record] no vector {}", name);
  const std::string load = text.substr(value, text.find(";\n", value) - value);
  const std::string call = fmt::format("vload{}(0, ", lanes), aligned = vector + " *)";
  if (load.compare(0, call.size(), call) == 0) {
    return load.substr(call.size(), load.size() - call.size() - 1);
  }
  const size_t type = load.find(aligned), open = load.find('[');
  if (type == std::string::npos || open == std::string::npos || load.back() != ']') {
    fail(Code::kInternal, "[record] no load: {}", load);
  }
  const std::string pointer = load.substr(1, open - 2);  // without the parentheses around it
  const std::string element = vector.substr(0, vector.size() - lanes.size());
  return fmt::format("{}{}*){} + {} * {}", pointer.substr(0, type - 1), element,
                     pointer.substr(type - 1 + aligned.size()),
                     load.substr(open + 1, load.size() - open - 2), lanes);
}

// "vector x = ballast_join(a, b, ...);" becomes the vector of its parts, each loaded alone from
// where the vector a lies.
void join_parts(std::string& text) {
  constexpr std::string_view kCall = "ballast_join(";
  for (size_t at = 0; (at = text.find(kCall, at)) != std::string::npos;) {
    const Declared joined = declared_at(text, at);
    const size_t digits = joined.type.find_first_of("0123456789"), close = text.find(");\n", at);
    const std::string element = joined.type.substr(0, digits), lanes = joined.type.substr(digits);
    std::vector<std::string> parts;
    for (size_t from = at + kCall.size(); from < close;) {
      const size_t end = std::min(text.find(", ", from), close);
      parts.push_back(text.substr(from, end - from));
      from = end + 2;
    }
    const size_t own_lanes = std::stoul(lanes) / parts.size();
    std::string loads, names;
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::string name = fmt::format("{}_{}", joined.name, i);
      loads += fmt::format("{}{} {} = vload{}(0, {});\n", element, own_lanes, name, own_lanes,
                           place_of_load(text, at, joined.type, lanes, parts[i]));
      names += (i == 0 ? "" : ", ") + name;
    }
    text.replace(at, close - at, fmt::format("({})({}", joined.type, names));
    text.insert(text.rfind('\n', at) + 1, loads);
    for (const std::string& part : parts) {
      if (count_name(text, part) != 1) continue;
      const size_t line = text.rfind('\n', text.find(fmt::format(" {} = ", part))) + 1;
      text.erase(line, text.find('\n', line) + 1 - line);
    }
    at = 0;
  }
}

// Hides from the compiler what the value of a variable is.
constexpr std::string_view kHideMacro =
    "#if defined(__x86_64__) || defined(__aarch64__)\n"
    "#define HIDE(number) __asm__(\"\" : \"+r\"(number))\n"
    "#else\n#define HIDE(number)\n#endif\n";

// SourceRules::hides_strides: "_name * (int16)(0, 1, ...", where _name is an argument, by a
// variable that the kernel begins with.
void hide_strides(std::string& text) {
  constexpr std::string_view kRamp = " * (int16)(0, 1, ", kHidden = "_hidden";
  std::set<std::string> names;
  for (size_t at = 0; (at = text.find(kRamp, at)) != std::string::npos; at += kRamp.size()) {
    const size_t name = text.rfind(' ', at - 1) + 1;
    if (text[name] != '_' || std::isdigit(text[name + 1]) != 0) continue;
    names.insert(text.substr(name, at - name));
    text.insert(at, kHidden);
  }
  if (names.empty()) return;
  const size_t body = text.find("{\n", text.rfind("__kernel void ")) + 2;
  for (const std::string& name : names) {
    text.insert(body, fmt::format(" int {0}{1} = {0};\n HIDE({0}{1});\n", name, kHidden));
  }
  text.insert(0, kHideMacro);
}

// Loops that hints.h names so, whose number of passes is hidden: one that is a constant and no
// multiple of four makes compilers unroll all of the loop and sum row by row, few sums at a time.
void unroll_by_fours(std::string& text) {
  constexpr std::string_view kLoop = "for (int ", kByFours = "_by_fours";
  bool has_any = false;
  for (size_t at = 0; (at = text.find(kLoop, at)) != std::string::npos;) {
    const size_t name = at + kLoop.size();
    const std::string counter = text.substr(name, text.find(' ', name) - name);
    at = name;
    if (counter.find(kByFours) == std::string::npos) continue;
    const std::string test = counter + " < ";
    const size_t end = text.find(test, name) + test.size(), close = text.find(';', end);
    const std::string hidden = counter + "_end",
                      before = fmt::format("int {0} = {1};\nHIDE({0});\n#pragma unroll 4\n", hidden,
                                           text.substr(end, close - end));
    text.replace(end, close - end, hidden);
    text.insert(name - kLoop.size(), before);
    at += before.size();
    has_any = true;
  }
  if (has_any) text.insert(0, kHideMacro);
}

// Lanes from 10 are letters in OpenCL; Halide writes .s10, which is two lanes, in strided loads.
void name_lanes(std::string& text) {
  for (int lane = 10; lane < 16; ++lane) {
    for (const char* after : {",", ")"}) {
      replace_all(text, fmt::format(".s{}{}", lane, after), fmt::format(".s{:x}{}", lane, after));
    }
  }
}

}  // namespace

std::string extract_kernel(std::string_view module, std::string_view entry,
                           const SourceRules& rules) {
  constexpr std::string_view kBlock = "// Address spaces for ";
  const size_t prelude = module.find("__kernel void _at_least_one_kernel");
  const size_t begin = module.find(fmt::format("{}{}\n", kBlock, entry));
  if (prelude == std::string_view::npos || begin == std::string_view::npos) {
    fail(Code::kInternal, "[record] Halide's OpenCL source has no kernel {}", entry);
  }
  const size_t end = module.find(kBlock, begin + kBlock.size());
  std::string text(module.substr(0, prelude));
  text += module.substr(begin, end == std::string_view::npos ? end : end - begin);
  renumber_names(text);
  replace_all(text, "\ninline ", "\nstatic inline ");
  // Halide leaves the fence out where reads come before writes; OpenCL wants it there too.
  replace_all(text, "barrier(0);", "barrier(CLK_LOCAL_MEM_FENCE);");
  // Results must not depend on what is fused with what.
  replace_all(text, "FP_CONTRACT ON", "FP_CONTRACT OFF");
  shorten_vector_places(text);
  fetch_ahead(text);
  keep_items_apart(text);
  align_private_arrays(text);
  name_lanes(text);
  join_parts(text);
  for (int lanes : {16, 8, 4, 2}) access_whole_vectors(text, lanes);
  prefetch_elements(text, kPrefetch);
  prefetch_elements(text, kEarlyPrefetch);
  prefetch_results(text, rules.streams);
  stream_values(text);
  if (rules.streams) stream_results(text);
  define_streams(text);
  take_lanes(text);
  define_functions(text);
  if (rules.direct_access) split_places(text, rules.direct_stack);
  // Of places that were split as those of the loads beside them.
  prefetch_elements(text, kLatePrefetch);
  unroll_by_fours(text);
  if (rules.hides_strides) hide_strides(text);
  if (rules.may_alias) replace_all(text, "*restrict ", "*");
  ask_for_registers(text);
  return text;
}

}  // namespace ballast::kernels
