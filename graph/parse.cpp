#include "graph/text.h"

#include <cctype>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <unordered_map>

namespace ballast::graph {

using device::Code;
using device::fail;

namespace {

constexpr size_t kMostAxes = 8;  // the ABI's limit
constexpr int kDeepest = 64;     // regions within regions

// Reads one text from front to end; every complaint carries line and column.
class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  [[noreturn]] void complain(const std::string& what) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < position_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n';
    }
    fail(Code::kInvalidArgument, "[graph_from_text] line {}, column {}: {}", line, column, what);
  }

  bool at_end() {
    skip_space();
    return position_ == text_.size();
  }
  bool accept(const std::string& token) {
    skip_space();
    if (text_.compare(position_, token.size(), token) != 0) return false;
    position_ += token.size();
    return true;
  }
  void expect(const std::string& token) {
    if (!accept(token)) complain(fmt::format("expected '{}'", token));
  }
  std::string word() {
    skip_space();
    const size_t start = position_;
    while (position_ < text_.size() && (std::isalnum(byte()) || text_[position_] == '_')) {
      ++position_;
    }
    if (start == position_) complain("expected a name");
    return text_.substr(start, position_ - start);
  }
  int64_t integer() {
    const std::string digits = number_text();
    if (const auto value = integer_in(digits)) return *value;
    complain(fmt::format("'{}' is not an integer", digits));
  }
  // None if the text is something else; complains of an integer that is too large.
  std::optional<int64_t> integer_in(const std::string& text) const {
    int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, value);
    if (at != end || error == std::errc::invalid_argument) return std::nullopt;
    if (error == std::errc::result_out_of_range) {
      complain(fmt::format("{} does not fit 64 bits", text));
    }
    return value;
  }
  std::string number_text() {
    skip_space();
    const size_t start = position_;
    while (position_ < text_.size() && (std::isalnum(byte()) || text_[position_] == '-' ||
                                        text_[position_] == '+' || text_[position_] == '.')) {
      ++position_;
    }
    if (start == position_) complain("expected a number");
    return text_.substr(start, position_ - start);
  }
  std::string quoted() {
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
    expect("\"");
    return result;
  }
  std::vector<int64_t> integers() {
    std::vector<int64_t> result;
    expect("[");
    while (!accept("]")) {
      if (!result.empty()) expect(",");
      result.push_back(integer());
    }
    return result;
  }
  char peek() {
    skip_space();
    return position_ < text_.size() ? text_[position_] : '\0';
  }

 private:
  unsigned char byte() const { return static_cast<unsigned char>(text_[position_]); }
  void skip_space() {
    while (position_ < text_.size() && std::isspace(byte())) ++position_;
  }

  const std::string& text_;
  size_t position_ = 0;
};

class Parser {
 public:
  explicit Parser(Reader& in, int depth = 0) : in_(in), depth_(depth) {}

  Graph parse() {
    in_.expect("ballast.graph");
    if (in_.integer() != 1) in_.complain("unknown version of the text form");
    while (!in_.at_end()) statement();
    return std::move(graph_);
  }
  // After the opening brace.
  Graph region() {
    if (depth_ > kDeepest)
      in_.complain(fmt::format("more than {} regions within regions", kDeepest));
    while (!in_.accept("}")) {
      if (in_.at_end()) in_.complain("expected '}'");
      statement();
    }
    return std::move(graph_);
  }

 private:
  void statement() {
    if (in_.accept("input")) return declare(true);
    if (in_.accept("state")) return declare(false);
    if (in_.accept("const")) return constant();
    if (in_.accept("update")) {
      const ValueId state = use();
      in_.expect("=");
      return graph_.set_update(state, use());
    }
    if (in_.accept("output")) {
      std::vector<ValueId> values{use()};
      while (in_.accept(",")) values.push_back(use());
      return graph_.set_outputs(std::move(values));
    }
    node();
  }

  void declare(bool is_input) {
    const int64_t name = definition();
    const std::string text = in_.quoted();
    in_.expect(":");
    const TensorType t = type();
    define(name, is_input ? graph_.add_input(text, t) : graph_.add_state(text, t));
  }

  void constant() {
    const int64_t name = definition();
    in_.expect(":");
    const TensorType t = type();
    in_.expect("=");
    const std::string hex = t.bytes() == 0 ? "" : in_.word();
    if (hex.size() != 2 * t.bytes()) in_.complain(fmt::format("expected {} bytes", t.bytes()));
    auto data = std::make_shared<std::vector<uint8_t>>();
    for (size_t i = 0; i < hex.size(); i += 2) {
      char* end = nullptr;
      const std::string digits = hex.substr(i, 2);
      data->push_back(static_cast<uint8_t>(std::strtoul(digits.c_str(), &end, 16)));
      if (*end != 0) in_.complain("expected hexadecimal digits");
    }
    define(name, graph_.add_constant(t, std::move(data)));
  }

  void node() {
    std::vector<int64_t> names{definition()};
    while (in_.accept(",")) names.push_back(definition());
    in_.expect("=");
    const std::string op = in_.word();
    std::vector<ValueId> inputs;
    in_.expect("(");
    while (!in_.accept(")")) {
      if (!inputs.empty()) in_.expect(",");
      inputs.push_back(use());
    }
    Attrs node_attrs = in_.accept("{") ? attrs() : Attrs{};
    in_.expect(":");
    std::vector<TensorType> types{type()};
    while (in_.accept(",")) types.push_back(type());
    std::string where = in_.accept("@") ? in_.quoted() : "";
    Regions regions;
    while (in_.accept("{")) {
      regions.push_back(std::make_shared<const Graph>(Parser(in_, depth_ + 1).region()));
    }
    const auto outputs =
        graph_.add_node(op, std::move(node_attrs), inputs, std::move(where), std::move(regions));
    if (graph_.types(outputs) != types) in_.complain(fmt::format("{} gives other types", op));
    if (names.size() != outputs.size()) in_.complain(fmt::format("{} results", outputs.size()));
    for (size_t i = 0; i < names.size(); ++i) define(names[i], outputs[i]);
  }

  Attrs attrs() {
    Attrs result;
    while (!in_.accept("}")) {
      if (!result.empty()) in_.expect(",");
      const std::string name = in_.word();
      in_.expect("=");
      result[name] = attr_value();
    }
    return result;
  }

  AttrValue attr_value() {
    if (in_.peek() == '"') return in_.quoted();
    if (in_.peek() == '[') return in_.integers();
    const std::string text = in_.number_text();
    if (const auto value = in_.integer_in(text)) return *value;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (*end != 0) in_.complain(fmt::format("'{}' is not a number", text));
    return value;
  }

  TensorType type() {
    const std::string dtype = in_.word();
    TensorType result{kernels::dtype_named(dtype), in_.integers()};
    if (result.shape.size() > kMostAxes) {
      in_.complain(fmt::format("rank {}, at most {} is possible", result.shape.size(), kMostAxes));
    }
    check_size(result);
    return result;
  }

  int64_t definition() {
    in_.expect("%");
    const int64_t name = in_.integer();
    if (values_.count(name)) in_.complain(fmt::format("%{} is defined twice", name));
    return name;
  }
  void define(int64_t name, ValueId id) { values_[name] = id; }
  ValueId use() {
    in_.expect("%");
    const int64_t name = in_.integer();
    auto found = values_.find(name);
    if (found == values_.end()) in_.complain(fmt::format("%{} is not defined", name));
    return found->second;
  }

  Reader& in_;
  int depth_;
  Graph graph_;
  std::unordered_map<int64_t, ValueId> values_;
};

}  // namespace

Graph parse(const std::string& text) {
  Reader reader(text);
  return Parser(reader).parse();
}

}  // namespace ballast::graph
