#include "frontend/ops/print.h"
#include "frontend/program/primitive.h"
#include "frontend/program/program_text.h"
#include "frontend/program/text_reader.h"
#include "frontend/program/token.h"
#include "frontend/tensor/operand.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace ballast {

namespace {

constexpr int kDeepest = 64;               // bodies within bodies
constexpr int64_t kMostBytes = 1LL << 62;  // of a tensor

// The name of a file, for as long as the process lives: a Where only refers to it.
const char* kept_name(const std::string& file) {
  static std::mutex mutex;
  static auto* names = new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return names->insert(file).first->c_str();
}

class Parser {
 public:
  Parser(TextReader& in, const Bindings& bindings) : in_(in), bindings_(bindings) {}

  Program whole() {
    in_.skip_lines();
    Program program = this->program(0);
    if (!in_.at_end()) in_.complain("expected nothing after the program");
    return program;
  }

 private:
  // What the lines of one program may refer to.
  struct Scope {
    std::unordered_map<std::string, Var> variables;
    int depth = 0;
  };

  Program program(int depth) {
    if (depth > kDeepest) in_.complain(fmt::format("more than {} bodies within bodies", kDeepest));
    Scope scope{{}, depth};
    Program program;
    in_.expect("(");
    while (!in_.accept(")")) {
      if (!program.inputs.empty()) in_.expect(",");
      program.inputs.push_back(typed(scope));
    }
    in_.expect("{");
    in_.end_line();
    while (in_.accept_word("captured")) captured(program, scope);
    while (in_.accept_word("state")) state(program, scope);
    for (;;) {
      if (in_.accept_word("update")) {
        update(program, scope);
      } else if (in_.accept_word("return")) {
        break;
      } else if (program.effects.empty()) {
        program.equations.push_back(equation(scope));
      } else {
        in_.complain("expected 'update' or 'return'");
      }
    }
    while (!in_.at_line_end()) program.outputs.push_back(atom(scope));
    in_.end_line();
    in_.expect("}");
    in_.end_line();
    return program;
  }

  void check_open(const Scope& scope, const char* what) {
    if (scope.depth > 0) in_.complain(fmt::format("a body is closed: it has no {}", what));
  }

  void captured(Program& program, Scope& scope) {
    check_open(scope, "captured tensors");
    const size_t at = in_.position();
    const std::string name = in_.word("a name", "_");
    Var var = typed_as(name, at, scope);
    const auto bound = bindings_.captured.find(name);
    if (bound == bindings_.captured.end()) {
      in_.complain(fmt::format("no tensor is bound for the captured {}", name), at);
    }
    if (bound->second.type() != var->type) {
      in_.complain(fmt::format("the captured {} is {}, bound is {}", name, to_string(var->type),
                               to_string(bound->second.type())),
                   at);
    }
    program.captured.push_back({std::move(var), bound->second});
    in_.end_line();
  }

  Parameter parameter(const TensorType* type) {
    const size_t at = in_.position();
    std::string name = in_.peek() == '"' ? in_.quoted() : in_.word("a parameter's name", "_.");
    if (in_.accept("#")) name += fmt::format("#{}", in_.integer());
    if (name == io_token().name() && (!type || is_token(*type))) return io_token();
    const auto bound = bindings_.parameters.find(name);
    if (bound == bindings_.parameters.end()) {
      in_.complain(fmt::format("no parameter is bound for {}", name), at);
    }
    if (type && bound->second.type() != *type) {
      in_.complain(fmt::format("the state is {}, parameter {} is {}", to_string(*type), name,
                               to_string(bound->second.type())),
                   at);
    }
    return bound->second;
  }

  void state(Program& program, Scope& scope) {
    check_open(scope, "states");
    Var var = typed(scope);
    in_.expect("=");
    const size_t at = in_.position();
    Parameter given = parameter(&var->type);
    for (const auto& known : program.states) {
      if (known.parameter == given) in_.complain("the parameter is a state already", at);
    }
    program.states.push_back({std::move(var), std::move(given)});
    in_.end_line();
  }

  void update(Program& program, Scope& scope) {
    check_open(scope, "effects");
    const size_t at = in_.position();
    Parameter given = parameter(nullptr);
    for (const auto& known : program.effects) {
      if (known.parameter == given) in_.complain("the parameter is updated already", at);
    }
    in_.expect("<-");
    Atom value = atom(scope);
    if (value.type() != given.type()) {
      in_.complain(fmt::format("parameter {} is {}, the new value {}", given.name(),
                               to_string(given.type()), to_string(value.type())),
                   at);
    }
    program.effects.push_back({std::move(given), std::move(value)});
    in_.end_line();
  }

  Equation equation(Scope& scope) {
    Equation made;
    const size_t start = in_.position();
    std::vector<std::pair<std::string, TensorType>> results;
    do {
      std::string name = in_.word("an equation", "_");
      in_.expect(":");
      results.emplace_back(std::move(name), type());
    } while (!in_.accept("="));
    made.primitive = in_.word("the name of a primitive", "_");
    if (in_.accept("[")) made.attrs = attrs();
    while (in_.peek() != '@' && !in_.at_line_end()) made.inputs.push_back(atom(scope));
    if (in_.accept("@")) made.where = where();
    in_.end_line();
    Bodies bodies;
    while (in_.peek() == '(') {
      bodies.push_back(std::make_shared<const Program>(program(scope.depth + 1)));
    }
    made.bodies = std::move(bodies);
    check_types(made, results, start);
    for (const auto& [name, type] : results) {
      made.outputs.push_back(define(name, type, start, scope));
    }
    return made;
  }

  // What is inferred for the equation is what its results say.
  void check_types(const Equation& made,
                   const std::vector<std::pair<std::string, TensorType>>& results, size_t at) {
    std::vector<TensorType> inputs, inferred;
    for (const Atom& input : made.inputs) inputs.push_back(input.type());
    try {
      inferred = infer(made.primitive, inputs, made.attrs, made.bodies);
    } catch (const std::exception& error) {
      in_.complain(error.what(), at);
    }
    std::string given, found;
    for (const auto& [name, type] : results) given += " " + to_string(type);
    for (const TensorType& type : inferred) found += " " + to_string(type);
    if (given != found) {
      in_.complain(fmt::format("{} gives{}, the text says{}", made.primitive, found, given), at);
    }
  }

  Attrs attrs() {
    Attrs result;
    do {
      std::string name = in_.word("an attribute's name", "_");
      in_.expect("=");
      result.emplace_back(std::move(name), attr_value());
    } while (in_.accept(","));
    in_.expect("]");
    return result;
  }

  AttrValue attr_value() {
    if (in_.peek() == '"') return in_.quoted();
    if (in_.peek() == '[') return in_.integers();
    TextReader ahead = in_;
    const bool is_real = ahead.number().find_first_of(".en") != std::string::npos;
    if (is_real) return in_.real();
    return in_.integer();
  }

  Where where() {
    const size_t at = in_.position();
    const std::string text = in_.quoted();
    const size_t colon = text.rfind(':');
    int line = 0;
    const char* end = text.data() + text.size();
    const bool has_line = colon != std::string::npos &&
                          std::from_chars(text.data() + colon + 1, end, line).ptr == end;
    if (!has_line) in_.complain("expected \"file:line\"", at);
    return {kept_name(text.substr(0, colon)), line};
  }

  TensorType type() {
    const size_t at = in_.position();
    const std::string name = in_.word("a type", "");
    if (name == name_of(kToken)) return token_type();
    TensorType result{dtype_named(name, at), in_.integers()};
    int64_t bytes = static_cast<int64_t>(size_of(result.dtype));
    for (int64_t extent : result.shape) {
      const bool is_absurd =
          extent < 0 || __builtin_mul_overflow(bytes, std::max<int64_t>(extent, 1), &bytes);
      if (is_absurd || bytes > kMostBytes) in_.complain("the shape is absurd", at);
    }
    if (result.shape.size() > BALLAST_MAX_RANK) {
      in_.complain(
          fmt::format("rank {}, at most {} is possible", result.shape.size(), BALLAST_MAX_RANK),
          at);
    }
    return result;
  }

  DType dtype_named(const std::string& name, size_t at) {
    for (int32_t i = BALLAST_F32; i <= BALLAST_BOOL; ++i) {
      if (name == name_of(static_cast<DType>(i))) return static_cast<DType>(i);
    }
    in_.complain(fmt::format("{} is no element type", name), at);
  }

  Var typed(Scope& scope) {
    const size_t at = in_.position();
    return typed_as(in_.word("a variable", "_"), at, scope);
  }
  Var typed_as(const std::string& name, size_t at, Scope& scope) {
    in_.expect(":");
    return define(name, type(), at, scope);
  }

  // Bodies may share variables: a name that an earlier one had for the same type is the same.
  Var define(const std::string& name, const TensorType& type, size_t at, Scope& scope) {
    if (scope.variables.count(name) > 0) {
      in_.complain(fmt::format("{} is defined twice", name), at);
    }
    Var& known = variables_[name];
    if (!known || known->type != type) known = std::make_shared<Variable>(Variable{type});
    return scope.variables[name] = known;
  }

  // A name, or a number with a type: "2:f32" is a scalar, "2:f32[1, 1]" is not.
  Atom atom(Scope& scope) {
    const size_t at = in_.position();
    const std::string text = in_.word("a variable or a number", "_+-.");
    if (!in_.accept(":")) {
      const auto found = scope.variables.find(text);
      if (found == scope.variables.end()) {
        in_.complain(fmt::format("{} is not defined", text), at);
      }
      return {found->second, {}};
    }
    TensorType type{dtype_named(in_.word("an element type", ""), at), {}};
    if (in_.peek() == '[') type.shape = in_.integers();
    for (int64_t extent : type.shape) {
      if (extent != 1) in_.complain("a literal has one element", at);
    }
    return {nullptr, Tensor::on_host_bytes(element(text, type.dtype, at), type)};
  }

  std::vector<uint8_t> element(const std::string& text, DType dtype, size_t at) {
    if (dtype == DType::kI64) {
      int64_t value = 0;
      const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error == std::errc() && next == text.data() + text.size()) {
        std::vector<uint8_t> bytes(sizeof(value));
        std::memcpy(bytes.data(), &value, sizeof(value));
        return bytes;
      }
    }
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const bool fits =
        is_float(dtype) || (std::abs(value) < 1LL << 31 && std::trunc(value) == value);
    if (*end == 0 && fits) {
      std::vector<uint8_t> bytes = encode(value, dtype);
      if (is_float(dtype) || decode(bytes.data(), dtype) == value) return bytes;
    }
    in_.complain(fmt::format("'{}' is no {}", text, name_of(dtype)), at);
  }

  TextReader& in_;
  const Bindings& bindings_;
  std::unordered_map<std::string, Var> variables_;  // of all scopes
};

}  // namespace

Program parse_program(const std::string& text, const Bindings& bindings) {
  TextReader reader(text, "parse_program");
  Program program = Parser(reader, bindings).whole();
  verify(program);
  return program;
}

}  // namespace ballast
