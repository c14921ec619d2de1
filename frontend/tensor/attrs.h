// Attributes of an op: an ordered list of named values, and their forms at the ABI. Plain values.
#pragma once

#include "frontend/tensor/types.h"

#include <ballast/op.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ballast {

using AttrValue = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

std::string to_string(const Attrs& attrs);    // "[axes=[0, 1], keep_dims=0]"; empty for none
std::string quoted(const std::string& text);  // "a \"b\"\n"

// The values; throw where the attribute is missing and nothing is given in its stead.
int64_t int_attr(const Attrs& attrs, const std::string& name);
double float_attr(const Attrs& attrs, const std::string& name, double otherwise);
const std::vector<int64_t>& ints_attr(const Attrs& attrs, const std::string& name);

// A call in the ABI's form. Borrows everything it was made from.
class OpCall {
 public:
  OpCall(const std::string& name, const std::vector<TensorType>& inputs, const Attrs& attrs);
  OpCall(const OpCall&) = delete;
  OpCall& operator=(const OpCall&) = delete;
  const ballast_op_call* get() const { return &call_; }

 private:
  std::vector<ballast_tensor_desc> inputs_;
  std::vector<ballast_attr> attrs_;
  ballast_op_call call_;
};

// Name, attributes and input types as one string: what op caches are keyed by.
std::string op_key(const std::string& name, const std::vector<TensorType>& inputs,
                   const Attrs& attrs);

// Its part for one input.
void append_key(std::string& key, const TensorType& type);

ballast_str to_abi(const std::string& text);  // borrows
ballast_tensor_desc to_abi(const TensorType& type);
TensorType from_abi(const ballast_tensor_desc& desc);
std::string from_abi(ballast_str text);

}  // namespace ballast
