#include "bench/case.h"

#include <nlohmann/json.hpp>

#include <cmath>
#include <map>
#include <stdexcept>

namespace ballast::bench {

int64_t Operand::elements() const {
  int64_t count = 1;
  for (int64_t extent : shape) count *= extent;
  return count;
}

uint64_t Operand::bytes() const {
  static const std::map<std::string, uint64_t> sizes = {{"f32", 4},  {"f64", 8}, {"f16", 2},
                                                        {"bf16", 2}, {"i32", 4}, {"i64", 8},
                                                        {"u8", 1},   {"bool", 1}};
  return sizes.at(dtype) * static_cast<uint64_t>(elements());
}

Operand f32(std::vector<int64_t> shape) { return {"f32", std::move(shape)}; }
Operand positive(std::vector<int64_t> shape) { return {"f32", std::move(shape), Fill::kPositive}; }
Operand unit(std::vector<int64_t> shape) { return {"f32", std::move(shape), Fill::kUnit}; }
Operand index(std::vector<int64_t> shape, int64_t limit) {
  return {"i32", std::move(shape), Fill::kIndex, limit};
}
Operand of(const std::string& dtype, std::vector<int64_t> shape) {
  const bool is_float = dtype == "f16" || dtype == "bf16" || dtype == "f32" || dtype == "f64";
  return {dtype, std::move(shape), is_float ? Fill::kUniform : Fill::kIndex, 2};
}

std::string Case::shapes() const {
  std::string text;
  for (const Operand& input : inputs) {
    if (input.shape.empty()) continue;
    if (!text.empty()) text += ", ";
    if (input.dtype != "f32") text += input.dtype + " ";
    for (size_t i = 0; i < input.shape.size(); ++i) {
      text += (i ? "x" : "") + std::to_string(input.shape[i]);
    }
  }
  return text;
}

std::vector<float> values_of(const Operand& operand, size_t number) {
  std::vector<float> values(operand.elements());
  for (size_t i = 0; i < values.size(); ++i) {
    // A multiplicative hash in 32 bits, which numpy's uint32 repeats exactly.
    uint32_t h = (static_cast<uint32_t>(i) + 1) * 2654435761u + static_cast<uint32_t>(number) * 97u;
    h = (h ^ (h >> 15)) * 739982445u;
    h ^= h >> 12;
    const float u = static_cast<float>(h >> 8) / 16777216.0f;
    switch (operand.fill) {
      case Fill::kUniform:
        values[i] = 2 * u - 1;
        break;
      case Fill::kPositive:
        values[i] = u + 0.5f;
        break;
      case Fill::kUnit:
        values[i] = u;
        break;
      case Fill::kIndex:
        values[i] = static_cast<float>((h >> 8) % operand.limit);
        break;
    }
  }
  return values;
}

Checksum checksum_of(const std::vector<float>& values) {
  Checksum sum;
  for (size_t i = 0; i < values.size(); ++i) {
    sum.magnitude += std::abs(values[i]) * (1 + (i % 13) / 13.0);
    sum.sign += values[i] * ((7919 * i % 101) / 50.0 - 1);
  }
  const double count = values.empty() ? 1 : static_cast<double>(values.size());
  return {sum.magnitude / count, sum.sign / count};
}

bool agree(const Checksum& a, const Checksum& b) {
  const double tolerance = 1e-3 * std::max(std::abs(a.magnitude), std::abs(b.magnitude)) + 1e-7;
  return std::abs(a.magnitude - b.magnitude) <= tolerance && std::abs(a.sign - b.sign) <= tolerance;
}

namespace {

template <class T>
T attr_of(const Case& c, const char* name, const T& otherwise) {
  const auto found = c.attrs.find(name);
  return found == c.attrs.end() ? otherwise : std::get<T>(found->second);
}

}  // namespace

int64_t int_of(const Case& c, const char* name, int64_t otherwise) {
  return attr_of<int64_t>(c, name, otherwise);
}
double double_of(const Case& c, const char* name, double otherwise) {
  return attr_of<double>(c, name, otherwise);
}
std::string string_of(const Case& c, const char* name, const std::string& otherwise) {
  return attr_of<std::string>(c, name, otherwise);
}
std::vector<int64_t> ints_of(const Case& c, const char* name,
                             const std::vector<int64_t>& otherwise) {
  return attr_of<std::vector<int64_t>>(c, name, otherwise);
}

namespace {

nlohmann::json json_of(const Attrs& attrs) {
  nlohmann::json json = nlohmann::json::object();
  for (const auto& [name, value] : attrs) {
    std::visit([&, &key = name](const auto& v) { json[key] = v; }, value);
  }
  return json;
}

}  // namespace

void to_json(nlohmann::json& json, const Case& c) {
  json = {{"name", c.name}, {"op", c.op}, {"attrs", json_of(c.attrs)}};
  json["inputs"] = nlohmann::json::array();
  for (const Operand& input : c.inputs) {
    json["inputs"].push_back({{"dtype", input.dtype},
                              {"shape", input.shape},
                              {"fill", static_cast<int>(input.fill)},
                              {"limit", input.limit}});
  }
  for (const Step& step : c.steps) {
    json["steps"].push_back(
        {{"op", step.op}, {"inputs", step.inputs}, {"attrs", json_of(step.attrs)}});
  }
}

void from_json(const nlohmann::json& json, Case& c) {
  json.at("name").get_to(c.name);
  json.at("op").get_to(c.op);
  for (const auto& [name, value] : json.at("attrs").items()) {
    if (value.is_string()) c.attrs[name] = value.get<std::string>();
    if (value.is_number_integer()) c.attrs[name] = value.get<int64_t>();
    if (value.is_number_float()) c.attrs[name] = value.get<double>();
    if (value.is_array()) c.attrs[name] = value.get<std::vector<int64_t>>();
  }
  for (const auto& input : json.at("inputs")) {
    c.inputs.push_back({input.at("dtype"), input.at("shape"), static_cast<Fill>(input.at("fill")),
                        input.at("limit")});
  }
}

}  // namespace ballast::bench
