// The numbers of docs/ops.md, one at a time: a word is found by computing its block alone.
#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace ballast::tests {

namespace {

using Words = std::array<uint32_t, 4>;

Words philox(Words counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xd2511f53} * counter[0], b = uint64_t{0xcd9e8d57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9e3779b9;
    key[1] += 0xbb67ae85;
  }
  return counter;
}

const AttrValue* find_attr(const Attrs& attrs, const std::string& name) {
  for (const auto& [key, value] : attrs) {
    if (key == name) return &value;
  }
  return nullptr;
}
double number(const Attrs& attrs, const std::string& name, double otherwise) {
  const AttrValue* value = find_attr(attrs, name);
  if (value == nullptr) return otherwise;
  return value->index() == 0 ? static_cast<double>(std::get<int64_t>(*value))
                             : std::get<double>(*value);
}

std::array<uint32_t, 2> halves(uint64_t value) {
  return {static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)};
}

// Word i of a call.
class Source {
 public:
  Source(const HostArray& key, const Attrs& attrs)
      : seed_(static_cast<int64_t>(key.values[0])),
        offset_(static_cast<int64_t>(key.values[1])),
        stream_(static_cast<int64_t>(number(attrs, "stream", 0))) {}
  uint32_t word(size_t i) const {
    const auto at = halves(static_cast<uint64_t>(offset_) + i / 4);
    const auto stream = halves(static_cast<uint64_t>(stream_));
    return philox({at[0], at[1], stream[0], stream[1]},
                  halves(static_cast<uint64_t>(seed_)))[i % 4];
  }
  double uniform(size_t i) const { return (word(i) >> 8) * 0x1p-24; }

 private:
  int64_t seed_, offset_, stream_;
};

// A reference that computes element i from the source of input `key`.
template <class Element>
ReferenceOp drawn(Element element, size_t key = 0) {
  return [=](const std::vector<HostArray>& inputs, const Attrs& attrs,
             std::vector<HostArray>& outputs) {
    Source source(inputs[key], attrs);
    for (size_t i = 0; i < outputs[0].values.size(); ++i) {
      outputs[0].values[i] = element(source, i, inputs, attrs);
    }
  };
}

using Inputs = std::vector<HostArray>;

double standard_normal(const Source& source, size_t i) {
  const double u = (source.word(i & ~size_t{1}) + 0.5) * 0x1p-32;
  const double angle = 2 * M_PI * source.word(i | 1) * 0x1p-32;
  return std::sqrt(-2 * std::log(u)) * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

// By bisection of the distribution function.
double standard_truncated(const Source& source, size_t i) {
  const double u = ((source.word(i) >> 8) + 0.5) * 0x1p-24;
  const double target = (2 * u - 1) * std::erf(M_SQRT2);
  double low = -2, high = 2;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (std::erf(middle * M_SQRT1_2) < target ? low : high) = middle;
  }
  return low;
}

double scaled(double standard, const Attrs& attrs) {
  return number(attrs, "mean", 0) + number(attrs, "stddev", 1) * standard;
}

double bernoulli(const Source& source, size_t i, const Inputs& inputs, const Attrs& attrs) {
  const double p = inputs.size() == 2 ? inputs[1].values[i] : number(attrs, "p", 0.5);
  return truth(source.uniform(i) < p);
}

double dropout(const Source& source, size_t i, const Inputs& inputs, const Attrs& attrs) {
  const double keep = number(attrs, "keep_prob", 0.5);
  return source.uniform(i) < keep ? inputs[0].values[i] / keep : 0;
}

// Fisher and Yates' shuffle, of numbers in order where there are few.
double permuted(const Source& source, size_t i, const Inputs&, const Attrs& attrs) {
  const auto n = static_cast<size_t>(number(attrs, "n", 0));
  const std::array<uint32_t, 2> key = {source.word(0), source.word(1)};
  std::vector<double> numbers;
  for (size_t k = 0; k < n; ++k) {
    const auto block = static_cast<uint32_t>(k / 64 * 16 + k % 16);
    const uint64_t word = philox({block, 0, 1, 0}, key)[k % 64 / 16];
    numbers.push_back(static_cast<double>(k));
    std::swap(numbers[k], numbers[word * (k + 1) >> 32]);
  }
  return numbers[i];
}

HostArray key(double seed, double offset) { return {{DType::kI64, {2}}, {seed, offset}}; }

void add_draws(OpFamilies& table) {
  const std::vector<Shape> shapes = {{},     {1},  {3},  {4},       {5},    {0, 7},
                                     {2, 3}, {64}, {65}, {3, 5, 7}, {1021}, {8, 128}};
  double seed = 1;
  for (const Shape& shape : shapes) {
    const HostArray state = key(seed, 1000 * seed);
    seed += 1;
    const Attrs plain = {{"shape", shape}};
    const auto with = [&](Attrs more) {
      more.emplace_back("shape", shape);
      return more;
    };
    table.add("random_bits", {state}, plain);
    table.add("random_bits", {state}, with({{"stream", int64_t{1} << 33}}));
    table.add("random_uniform", {state}, plain);
    table.add("random_uniform", {state}, with({{"low", -3.0}, {"high", 5.0}}));
    table.add("random_normal", {state}, plain).atol = 2e-6;
    table.add("random_normal", {state}, with({{"mean", 2.0}, {"stddev", 0.5}})).atol = 2e-6;
    table.add("truncated_normal", {state}, plain).atol = 3e-6;
    table.add("truncated_normal", {state}, with({{"stddev", 2.0}, {"stream", int64_t{7}}})).atol =
        6e-6;
    table.add("randint", {state}, with({{"low", int64_t{-5}}, {"high", int64_t{12}}}));
    table.add("bernoulli", {state}, with({{"p", 0.3}}));
    table.add("bernoulli", {state, real(shape, -0.2, 1.2)});
    const bool is_small = TensorType{DType::kF32, shape}.elements() < 10;
    table.add("dropout", {real(shape, -2, 2), state}, {}, is_small);
    table.add("dropout", {real(shape, -2, 2), state}, {{"keep_prob", 0.8}}, false);
  }
  table.add("dropout", {special(), key(3, 0)}, {{"keep_prob", 1.0}});
}

}  // namespace

void add_random(OpFamilies& table) {
  table.references.insert({
      {"random_bits", drawn([](const Source& s, size_t i, const Inputs&, const Attrs&) {
         return static_cast<double>(static_cast<int32_t>(s.word(i)));
       })},
      {"random_uniform", drawn([](const Source& s, size_t i, const Inputs&, const Attrs& attrs) {
         const double low = number(attrs, "low", 0), high = number(attrs, "high", 1);
         return low + (high - low) * s.uniform(i);
       })},
      {"random_normal", drawn([](const Source& s, size_t i, const Inputs&, const Attrs& attrs) {
         return scaled(standard_normal(s, i), attrs);
       })},
      {"truncated_normal", drawn([](const Source& s, size_t i, const Inputs&, const Attrs& attrs) {
         return scaled(standard_truncated(s, i), attrs);
       })},
      {"randint", drawn([](const Source& s, size_t i, const Inputs&, const Attrs& attrs) {
         const double low = number(attrs, "low", 0), high = number(attrs, "high", 0);
         return low + std::floor(s.word(i) * (high - low) * 0x1p-32);
       })},
      {"bernoulli", drawn(bernoulli)},
      {"dropout", drawn(dropout, 1)},
      {"random_permutation", drawn(permuted)},
      {"random_advance",
       [](const std::vector<HostArray>& inputs, const Attrs& attrs,
          std::vector<HostArray>& outputs) {
         outputs[0].values = inputs[0].values;
         outputs[0].values[1] += number(attrs, "blocks", 0);
       }},
  });
  const auto drawn_type = [](DType dtype) {
    return [dtype](const Types&, const Attrs& attrs) {
      return Types{{dtype, ints_attr(attrs, "shape")}};
    };
  };
  table.types.insert({
      {"random_bits", drawn_type(DType::kI32)},
      {"random_uniform", drawn_type(DType::kF32)},
      {"random_normal", drawn_type(DType::kF32)},
      {"truncated_normal", drawn_type(DType::kF32)},
      {"randint", drawn_type(DType::kI32)},
      {"bernoulli",
       [](const Types& in, const Attrs& attrs) {
         return Types{{DType::kBool, in.size() == 2 ? in[1].shape : ints_attr(attrs, "shape")}};
       }},
      {"dropout", like({0})},
      {"random_permutation",
       [](const Types&, const Attrs& attrs) {
         return Types{{DType::kI32, {int_attr(attrs, "n")}}};
       }},
      {"random_advance", like({0})},
  });
  add_draws(table);
  for (int64_t n : {0, 1, 2, 3, 7, 16, 33, 100, 128}) {
    table.add("random_permutation", {key(static_cast<double>(n), 5)}, {{"n", n}});
  }
  for (int64_t blocks : {int64_t{0}, int64_t{1}, int64_t{-3}, int64_t{1} << 35}) {
    table.add("random_advance", {key(4, 12)}, {{"blocks", blocks}});
  }
}

void draw_random(OpFamilies& table, Draw& draw) {
  const Shape shape = draw.shape(draw.below(4), 20000);
  const HostArray state =
      key(static_cast<double>(draw.below(1 << 30)), static_cast<double>(draw.below(1 << 30)));
  const Attrs attrs = {{"shape", shape}, {"stream", draw.below(1 << 30)}};
  const auto with = [&](Attrs more) {
    more.insert(more.end(), attrs.begin(), attrs.end());
    return more;
  };
  table.add("random_bits", {state}, attrs);
  table.add("random_uniform", {state}, with({{"low", -3.0}, {"high", 5.0}}));
  table.add("random_normal", {state}, with({{"mean", 2.0}, {"stddev", 0.5}})).atol = 2e-6;
  table.add("randint", {state}, with({{"low", int64_t{-5}}, {"high", int64_t{12}}}));
  table.add("bernoulli", {state}, with({{"p", 0.3}}));
  table.add("dropout", {real(shape, -2, 2), state}, {{"keep_prob", 0.8}});
  const Shape few = draw.shape(1, 2000);
  table.add("truncated_normal", {state}, {{"shape", few}, {"stddev", 2.0}}).atol = 6e-6;
  table.add("random_permutation", {state}, {{"n", draw.extent_or_none(300)}});
}

}  // namespace ballast::tests
