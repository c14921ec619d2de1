// The text of programs: what to_string(program) prints, and its parser.
//
//   (a:f32[3], b:f32[3]) {
//     captured c:f32[3]
//     state d:f32[] = fc.bias
//     e:f32[3] = add a b @ "net.cpp:12"
//     f:f32[3] = cond[consts=0] g e 2:f32
//       (h:f32[3]) {
//         ...
//       }
//     update fc.bias <- e
//     return f d
//   }
//
// A line is an equation: results with their types, the primitive with its attributes, operands;
// literals carry a type too. Its bodies follow it, programs that stand for themselves. The lines'
// order is that shown. A parameter of an odd name is quoted; a second one of a name is "name#2".
// The state of type token is io, what prints and other effects pass on.
//
// to_string(parse_program(to_string(p), bindings_of(p))) == to_string(p); values come back bit for
// bit, NaNs as NaN.
#pragma once

#include "frontend/program/program.h"

#include <map>
#include <string>

namespace ballast {

// What a text only names: captured tensors by variable, parameters by name as printed.
struct Bindings {
  std::map<std::string, Tensor> captured;
  std::map<std::string, Parameter> parameters;
};
Bindings bindings_of(const Program& program);

// A program that verify() accepts. Throws INVALID_ARGUMENT with line, column and what was expected
// for everything else: wrong syntax, unknown names, types that are not what is inferred, names
// without bindings.
Program parse_program(const std::string& text, const Bindings& bindings = {});

}  // namespace ballast
