// Printing that works everywhere: at once where tensors have values, and from inside jitted
// functions, sunk steps and the bodies of control flow whenever these run.
//
//   ops::print("z:", z);     z:
//                            Tensor(shape=[2, 2], dtype=Float32, value=
//                            [[ 2.00000000e+00,  2.00000000e+00],
//                             [ 2.00000000e+00,  2.00000000e+00]])
//
// Texts come in program order, whole lines, before the call that runs the function returns. They
// need no depend: a print takes a token and gives a new one, and the token is read and assigned as
// a parameter is. Differentiation prints what the forward pass computes, once; vmap prints one
// example after the other.
#pragma once

#include "frontend/ops/ops.h"
#include "frontend/ops/print_sink.h"
#include "frontend/program/primitive.h"
#include "frontend/tensor/operand.h"
#include "frontend/tensor/tree.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ballast {

namespace ops {

// What is printed on lines of its own: a text, a number, or tensors (a tree of them: one a line).
class PrintItem {
 public:
  PrintItem(const char* text, Where where = Where::here()) : text_(text), where_(where) {}
  PrintItem(std::string_view text, Where where = Where::here()) : text_(text), where_(where) {}
  PrintItem(const std::string& text, Where where = Where::here()) : text_(text), where_(where) {}
  template <class T, class = std::enable_if_t<std::is_arithmetic_v<T>>>
  PrintItem(T number, Where where = Where::here())
      : text_(fmt::format("{}", number)), where_(where) {}
  template <class Tree, class = std::enable_if_t<!std::is_arithmetic_v<Tree>>, class = void>
  PrintItem(const Tree& tree, Where where = Where::here())
      : tensors_(leaves_of(tree)), is_text_(false), where_(where) {}

  bool is_text() const { return is_text_; }
  const std::string& text() const { return text_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const Where& where() const { return where_; }

 private:
  std::string text_;
  std::vector<Tensor> tensors_;
  bool is_text_ = true;
  Where where_;
};

void print_items(const std::vector<PrintItem>& items);

template <class... Items>
void print(const PrintItem& first, const Items&... rest) {
  print_items({first, PrintItem(rest, first.where())...});
}

// MindSpore's form: an object that prints.
struct Print {
  template <class... Items>
  void operator()(const PrintItem& first, const Items&... rest) const {
    print(first, rest...);
  }
};

using ballast::depend;
using ballast::stop_gradient;

}  // namespace ops

// The parameter of type token that effects outside of the process read and assign.
const Parameter& io_token();

std::vector<Primitive> print_primitives();

}  // namespace ballast
