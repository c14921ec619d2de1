#include "graph/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ballast::graph {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\n";
    } else {
      result += c;
    }
  }
  return result + "\"";
}

}  // namespace

std::string attr_text(const AttrValue& value) {
  switch (value.index()) {
    case 0:
      return fmt::format("{}", std::get<int64_t>(value));
    case 1: {
      const std::string text = fmt::format("{}", std::get<double>(value));
      const bool reads_as_float = text.find_first_of(".en") != std::string::npos;
      return reads_as_float ? text : text + ".0";
    }
    case 2:
      return quoted(std::get<std::string>(value));
    default:
      return fmt::format("[{}]", fmt::join(std::get<std::vector<int64_t>>(value), ", "));
  }
}

namespace {

std::string attrs_text(const Node& node) {
  std::string text;
  for (const AttrSpec& spec : node.op->attrs) {
    const AttrValue& value = node.attrs.at(spec.name);
    const std::string value_text = attr_text(value);
    if (!spec.is_required && value_text == attr_text(spec.example)) continue;
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", spec.name, value_text);
  }
  return text.empty() ? "" : " {" + text + "}";
}

std::string ids_text(const std::vector<ValueId>& ids) {
  std::string text;
  for (ValueId id : ids) text += fmt::format("{}%{}", text.empty() ? "" : ", ", id);
  return text;
}

std::string types_text(const Graph& graph, const std::vector<ValueId>& ids) {
  std::string text;
  for (ValueId id : ids) {
    text += (text.empty() ? "" : ", ") + to_string(graph.value(id).type);
  }
  return text;
}

std::string constant_text(const Value& value, size_t limit) {
  const bool is_long = value.data->size() > limit;
  return is_long ? "..." : fmt::format("{:02x}", fmt::join(*value.data, ""));
}

std::string lines(const Graph& graph, size_t constant_limit, const std::string& indent);

std::string node_text(const Graph& graph, const Node& node, size_t constant_limit,
                      const std::string& indent) {
  std::string text =
      fmt::format("{}{} = {}({}){} : {}", indent, ids_text(node.outputs), node.op->name,
                  ids_text(node.inputs), attrs_text(node), types_text(graph, node.outputs));
  if (!node.where.empty()) text += " @ " + quoted(node.where);
  for (const auto& region : node.regions) {
    text += " {\n" + lines(*region, constant_limit, indent + "  ") + indent + "}";
  }
  return text + "\n";
}

std::string lines(const Graph& graph, size_t constant_limit, const std::string& indent) {
  std::string text;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    const std::string type = to_string(value.type);
    if (value.kind == ValueKind::kInput) {
      text += fmt::format("{}input %{} {}: {}\n", indent, id, quoted(value.name), type);
    } else if (value.kind == ValueKind::kState) {
      text += fmt::format("{}state %{} {}: {}\n", indent, id, quoted(value.name), type);
    } else if (value.kind == ValueKind::kConstant) {
      text += fmt::format("{}const %{}: {} = {}\n", indent, id, type,
                          constant_text(value, constant_limit));
    }
  }
  for (const Node& node : graph.nodes()) text += node_text(graph, node, constant_limit, indent);
  for (size_t i = 0; i < graph.states().size(); ++i) {
    if (graph.updates()[i] == kNoValue) continue;
    text += fmt::format("{}update %{} = %{}\n", indent, graph.states()[i], graph.updates()[i]);
  }
  if (!graph.outputs().empty()) {
    text += fmt::format("{}output {}\n", indent, ids_text(graph.outputs()));
  }
  return text;
}

}  // namespace

std::string print(const Graph& graph, size_t constant_limit) {
  return "ballast.graph 1\n" + lines(graph, constant_limit, "");
}

}  // namespace ballast::graph
