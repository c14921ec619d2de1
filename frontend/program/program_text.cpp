#include "frontend/program/program_text.h"

#include <algorithm>
#include <cstring>

namespace ballast {

namespace {

bool is_plain(const std::string& name) {
  auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

// Shortest text that reads as the same value.
std::string element_text(const uint8_t* bytes, DType dtype) {
  if (dtype == DType::kI64) {
    int64_t value = 0;
    std::memcpy(&value, bytes, sizeof(value));
    return fmt::format("{}", value);
  }
  const double value = decode(bytes, dtype);
  return dtype == DType::kF64 ? fmt::format("{}", value)
                              : fmt::format("{}", static_cast<float>(value));
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  // Variables are a, b, ..., z, ba, ... in order of appearance.
  std::string name(const Var& var) {
    size_t number = numbers_.emplace(var.get(), numbers_.size()).first->second;
    std::string text;
    do {
      text.insert(text.begin(), static_cast<char>('a' + number % 26));
      number /= 26;
    } while (number > 0);
    return text;
  }

  // The parameter's name; from the second one of a name on, with a number.
  std::string label(const Parameter& parameter) {
    std::vector<const void*>& same = parameters_[parameter.name()];
    const auto found = std::find(same.begin(), same.end(), parameter.id());
    const auto number = static_cast<size_t>(found - same.begin()) + 1;
    if (found == same.end()) same.push_back(parameter.id());
    return number == 1 ? parameter.name() : fmt::format("{}#{}", parameter.name(), number);
  }

  // Bodies stand indented below their equation.
  std::string program(const Program& program, const std::string& indent) {
    std::string text = indent + "(";
    for (size_t i = 0; i < program.inputs.size(); ++i) {
      text += (i > 0 ? ", " : "") + typed(program.inputs[i]);
    }
    text += ") {\n";
    for (const auto& captured : program.captured) {
      text += fmt::format("{}  captured {}\n", indent, typed(captured.var));
    }
    for (const auto& state : program.states) {
      const std::string var = typed(state.var);
      text += fmt::format("{}  state {} = {}\n", indent, var, shown_label(state.parameter));
    }
    for (const Equation& equation : program.equations) text += line(equation, indent + "  ");
    for (const auto& effect : program.effects) {
      const std::string target = shown_label(effect.parameter);
      text += fmt::format("{}  update {} <- {}\n", indent, target, atom(effect.value));
    }
    return text + fmt::format("{0}  return{1}\n{0}}}\n", indent, list(program.outputs));
  }

 private:
  std::string typed(const Var& var) { return name(var) + ":" + ballast::to_string(var->type); }

  std::string shown_label(const Parameter& parameter) {
    const std::string text = label(parameter), own = parameter.name();
    return is_plain(own) ? text : quoted(own) + text.substr(own.size());
  }

  std::string atom(const Atom& atom) {
    if (atom.var) return name(atom.var);
    const std::vector<uint8_t> bytes = atom.literal.to_host_bytes();
    const TensorType& type = atom.type();
    const std::string shape = type.shape.empty() ? "" : ballast::to_string(type.shape);
    return fmt::format("{}:{}{}", element_text(bytes.data(), type.dtype), name_of(type.dtype),
                       shape);
  }

  std::string list(const std::vector<Atom>& atoms) {
    std::string text;
    for (const Atom& each : atoms) text += " " + atom(each);
    return text;
  }

  std::string line(const Equation& equation, const std::string& indent) {
    std::string outputs;
    for (const Var& var : equation.outputs) outputs += (outputs.empty() ? "" : " ") + typed(var);
    std::string text = fmt::format("{}{} = {}{}{}", indent, outputs, equation.primitive,
                                   to_string(equation.attrs), list(equation.inputs));
    const bool has_line = options_.has_lines && *equation.where.file != '\0';
    if (has_line) text += " @ " + quoted(to_string(equation.where));
    text += "\n";
    for (const auto& body : equation.bodies) text += program(*body, indent + "  ");
    return text;
  }

  PrintOptions options_;
  std::unordered_map<const Variable*, size_t> numbers_;
  std::map<std::string, std::vector<const void*>> parameters_;  // ids by name
};

}  // namespace

std::string to_string(const Program& program, const PrintOptions& options) {
  return Printer(options).program(program, "");
}

Bindings bindings_of(const Program& program) {
  Printer printer({});
  Bindings bindings;
  for (const Var& var : program.inputs) printer.name(var);
  for (const auto& captured : program.captured) {
    bindings.captured.emplace(printer.name(captured.var), captured.value);
  }
  for (const auto& state : program.states) {
    bindings.parameters.emplace(printer.label(state.parameter), state.parameter);
  }
  for (const auto& effect : program.effects) {
    bindings.parameters.emplace(printer.label(effect.parameter), effect.parameter);
  }
  return bindings;
}

}  // namespace ballast
