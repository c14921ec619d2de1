#include "frontend/tensor/attrs.h"

#include "frontend/program/token.h"
#include "frontend/tensor/error.h"

namespace ballast {

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

namespace {

std::string text_of(const AttrValue& value) {
  if (auto* number = std::get_if<int64_t>(&value)) return fmt::format("{}", *number);
  if (auto* number = std::get_if<double>(&value)) return fmt::format("{:#}", *number);
  if (auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  return to_string(std::get<std::vector<int64_t>>(value));
}

const AttrValue& find(const Attrs& attrs, const std::string& name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return value;
  }
  fail(BALLAST_INVALID_ARGUMENT, "[attrs] no attribute named {}", name);
}

void append_bytes(std::string& key, const void* data, size_t size) {
  key.append(static_cast<const char*>(data), size);
}

ballast_attr attr_to_abi(const std::string& name, const AttrValue& value) {
  ballast_attr attr = BALLAST_INIT(ballast_attr);
  attr.name = to_abi(name);
  if (auto* number = std::get_if<int64_t>(&value)) {
    attr.kind = BALLAST_ATTR_INT;
    attr.int_value = *number;
  } else if (auto* real = std::get_if<double>(&value)) {
    attr.kind = BALLAST_ATTR_FLOAT;
    attr.float_value = *real;
  } else if (auto* text = std::get_if<std::string>(&value)) {
    attr.kind = BALLAST_ATTR_STRING;
    attr.string_value = to_abi(*text);
  } else {
    const auto& ints = std::get<std::vector<int64_t>>(value);
    attr.kind = BALLAST_ATTR_INTS;
    attr.ints = ints.data();
    attr.ints_count = ints.size();
  }
  return attr;
}

}  // namespace

std::string to_string(const Attrs& attrs) {
  std::string text;
  for (const auto& [name, value] : attrs) {
    text += (text.empty() ? "[" : ", ") + name + "=" + text_of(value);
  }
  return text.empty() ? text : text + "]";
}

int64_t int_attr(const Attrs& attrs, const std::string& name) {
  return std::get<int64_t>(find(attrs, name));
}

double float_attr(const Attrs& attrs, const std::string& name, double otherwise) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return std::get<double>(value);
  }
  return otherwise;
}

const std::vector<int64_t>& ints_attr(const Attrs& attrs, const std::string& name) {
  return std::get<std::vector<int64_t>>(find(attrs, name));
}

OpCall::OpCall(const std::string& name, const std::vector<TensorType>& inputs, const Attrs& attrs)
    : call_(BALLAST_INIT(ballast_op_call)) {
  for (const TensorType& type : inputs) inputs_.push_back(to_abi(type));
  for (const auto& [key, value] : attrs) attrs_.push_back(attr_to_abi(key, value));
  call_.name = to_abi(name);
  call_.inputs = inputs_.data();
  call_.input_count = inputs_.size();
  call_.input_stride = sizeof(ballast_tensor_desc);
  call_.attrs = attrs_.data();
  call_.attr_count = attrs_.size();
  call_.attr_stride = sizeof(ballast_attr);
}

void append_key(std::string& key, const TensorType& type) {
  key += '\0';
  key += static_cast<char>(type.dtype);
  key += static_cast<char>(type.shape.size());
  append_bytes(key, type.shape.data(), type.shape.size() * sizeof(int64_t));
}

namespace {

void append_key(std::string& key, const Attrs& attrs) {
  for (const auto& [attr, value] : attrs) {
    key += '\1';
    key += attr;
    key += static_cast<char>(value.index());
    if (auto* number = std::get_if<int64_t>(&value)) {
      append_bytes(key, number, sizeof(*number));
    } else if (auto* real = std::get_if<double>(&value)) {
      append_bytes(key, real, sizeof(*real));
    } else if (auto* text = std::get_if<std::string>(&value)) {
      key += *text;
    } else {
      const auto& ints = std::get<std::vector<int64_t>>(value);
      key += static_cast<char>(ints.size());
      append_bytes(key, ints.data(), ints.size() * sizeof(int64_t));
    }
  }
}

}  // namespace

std::string op_key(const std::string& name, const std::vector<TensorType>& inputs,
                   const Attrs& attrs) {
  std::string key = name;
  for (const TensorType& type : inputs) append_key(key, type);
  append_key(key, attrs);
  return key;
}

ballast_str to_abi(const std::string& text) { return {text.data(), text.size()}; }

ballast_tensor_desc to_abi(const TensorType& type) {
  if (is_token(type)) return to_abi(TensorType{DType::kU8, {0}});
  if (type.shape.size() > BALLAST_MAX_RANK) {
    fail(BALLAST_INVALID_ARGUMENT, "[tensor] {} has rank {}, at most {} is possible",
         to_string(type), type.shape.size(), BALLAST_MAX_RANK);
  }
  ballast_tensor_desc desc = BALLAST_INIT(ballast_tensor_desc);
  desc.dtype = static_cast<int32_t>(type.dtype);
  desc.rank = static_cast<uint32_t>(type.shape.size());
  for (size_t i = 0; i < type.shape.size(); ++i) desc.dims[i] = type.shape[i];
  return desc;
}

TensorType from_abi(const ballast_tensor_desc& desc) {
  return {static_cast<DType>(desc.dtype), Shape(desc.dims, desc.dims + desc.rank)};
}

std::string from_abi(ballast_str text) {
  return text.size == 0 ? std::string() : std::string(text.data, text.size);
}

}  // namespace ballast
