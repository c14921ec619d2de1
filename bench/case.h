// One piece of work to be timed, as a value that every contestant gets: the op's name, attributes
// and inputs. Rivals receive it as JSON, so this file knows nothing of the product.
#pragma once

#include "graph/attrs.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace ballast::bench {

using graph::Attrs;

// What an input's elements are, computed from its number and theirs, so that nothing is sent.
enum class Fill {
  kUniform,   // [-1, 1)
  kPositive,  // [0.5, 1.5)
  kUnit,      // [0, 1)
  kIndex,     // integers of [0, limit)
};

struct Operand {
  std::string dtype = "f32";
  std::vector<int64_t> shape;
  Fill fill = Fill::kUniform;
  int64_t limit = 1;

  int64_t elements() const;
  uint64_t bytes() const;
};

// How rows name their inputs.
Operand f32(std::vector<int64_t> shape);
Operand positive(std::vector<int64_t> shape);
Operand unit(std::vector<int64_t> shape);
Operand index(std::vector<int64_t> shape, int64_t limit);
Operand of(const std::string& dtype, std::vector<int64_t> shape);

// A node of a graph. Values are numbered: the case's inputs, then the steps' results in order. What
// no step reads is a result of the graph.
struct Step {
  std::string op;  // "constant" with attribute value: a scalar
  std::vector<uint32_t> inputs;
  Attrs attrs;
};

struct Case {
  std::string name;  // of the row: distinct
  std::string op;    // of the registry; of a graph: what the rivals know it by
  Attrs attrs;
  std::vector<Operand> inputs;
  // A graph in place of the op, to be fused.
  std::vector<Step> steps;
  // The same work with smaller ops of our own, left unfused: timed as one more rival.
  std::vector<Step> unfused;
  // Results that no rival can repeat (random numbers) are not compared.
  bool is_compared = true;

  std::string shapes() const;  // "64x784, 512x784"; what is not f32 is named
};

// The elements of an input, as numbers; integers and booleans are whole.
std::vector<float> values_of(const Operand& operand, size_t number);

// Two figures of a result that a different computation would not share. Insensitive to rounding.
struct Checksum {
  double magnitude = 0;  // mean of |v_i| weighted with 1 + (i mod 13) / 13
  double sign = 0;       // mean of v_i weighted with (7919 i mod 101) / 50 - 1
};
Checksum checksum_of(const std::vector<float>& values);
bool agree(const Checksum& a, const Checksum& b);

// Attributes as the rivals' code reads them; with a default where the row leaves them out.
int64_t int_of(const Case& c, const char* name, int64_t otherwise = 0);
double double_of(const Case& c, const char* name, double otherwise = 0);
std::string string_of(const Case& c, const char* name, const std::string& otherwise = {});
std::vector<int64_t> ints_of(const Case& c, const char* name,
                             const std::vector<int64_t>& otherwise = {});

void to_json(nlohmann::json& json, const Case& c);
void from_json(const nlohmann::json& json, Case& c);

}  // namespace ballast::bench
