// The text of programs: what is printed reads back as the same program, and nothing else gets
// through.
#include "frontend/program/program_text.h"
#include "frontend/ballast_frontend.h"
#include "frontend/test_support.h"
#include "tests/op_table.h"

#include <gmock/gmock.h>

#include <cmath>

namespace ballast::tests {
namespace {

using ::testing::HasSubstr;

Program parsed(const Program& program, const PrintOptions& options = {}) {
  return parse_program(to_string(program, options), bindings_of(program));
}

void expect_round_trip(const Program& program) {
  for (const bool has_lines : {false, true}) {
    const std::string text = to_string(program, {has_lines});
    EXPECT_EQ(to_string(parsed(program, {has_lines}), {has_lines}), text);
  }
}

// A program, and what transforms make of it.
void expect_round_trips(const Program& program, const std::vector<size_t>& inputs) {
  expect_round_trip(program);
  expect_round_trip(eliminate_dead_code(program));
  expect_round_trip(forward(program, inputs));
  expect_round_trip(forward(forward(program, inputs), inputs));
  expect_round_trip(reverse(program, inputs, {}));
  expect_round_trip(reverse(forward(reverse(program, inputs, {}), inputs), inputs, {}));
}

const TensorType kScalar{DType::kF32, {}}, kVector{DType::kF32, {2}};

TEST(ProgramText, EveryOpReadsBack) {
  for (const OpCase& row : op_table()) {
    std::vector<TensorType> types;
    for (const HostArray& input : row.inputs) types.push_back(input.type);
    const Program program = trace(
        [&](const std::vector<Tensor>& in) { return ops::call(row.op, in, row.attrs); }, types);
    SCOPED_TRACE(testing::PrintToString(row));
    expect_round_trip(program);
  }
}

// Control flow in control flow, with tensors and parameters from outside that are read and
// assigned, prints, random draws, and functions with gradients of their own.
struct Everything {
  Parameter w{Tensor::from_host<float>({1, 2}, {2}), "net.w"};
  Parameter odd{Tensor::from_host<float>({3}, {}), "a \"b\"\n#"};
  Parameter twin{Tensor::from_host<float>({0}, {}), "net.w"};
  Tensor captured = Tensor::from_host<float>({.5f, .25f}, {2});
  Generator generator{7};

  std::vector<Tensor> operator()(const std::vector<Tensor>& in) {
    ops::print("x {0}\n", in[0]);
    twin.assign(twin + 1.0f);
    auto [h, ys] = scan(
        [&](Tensor carry, Tensor x) {
          Tensor next = ops::tanh(carry * w + captured) + x;
          cond(
              ops::less(ops::sum(next), 0.1f), [&] { odd.assign(odd + ops::sum(next)); },
              [&] { ops::print("large", next); });
          return std::pair(next, next * odd);
        },
        in[0], ops::stack({in[0], in[0] * 2.0f}));
    Tensor last = while_loop([](Tensor c) { return ops::less(ops::sum(c), 10); },
                             [](Tensor c) { return c * c + 1.0f; }, h);
    Tensor noise = ops::random_uniform(Shape{2}, 0, 1, generator);
    auto clipped = custom_vjp([](Tensor x) { return x; }, [](Tensor x) { return std::pair(x, x); },
                              [](Tensor, Tensor dy) { return ops::clip(dy, -1, 1); });
    Tensor again = checkpoint([&](Tensor x) { return ops::exp(x) * w; })(clipped(last));
    return {ops::sum(depend(again, noise)) + ops::sum(ys) * 0.1f};
  }
};

TEST(ProgramText, EverythingReadsBack) {
  Everything everything;
  const Program program = trace(std::ref(everything), {kVector});
  expect_round_trips(program, {0});
  const std::string text = to_string(program);
  EXPECT_THAT(text, HasSubstr(":f32[] = \"a \\\"b\\\"\\n#\"\n"));
  EXPECT_THAT(text, HasSubstr("update net.w <- "));
  EXPECT_THAT(text, HasSubstr(":f32[2] = net.w#2\n"));
  EXPECT_THAT(text, HasSubstr("update io <- "));
  EXPECT_THAT(to_string(program, {true}), HasSubstr(" @ \"program_text_test.cpp:"));
}

TEST(ProgramText, MappedProgramsReadBack) {
  const std::vector<bool> is_mapped{true};
  auto without_updates = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{cond(
        ops::less(in[0], 3), [&] { return in[0] * 2.0f; },
        [&] {
          ops::print("x", in[0]);
          return -in[0];
        })};
  };
  const Program small = trace(without_updates, {kScalar});
  expect_round_trip(trace(
      [&](const std::vector<Tensor>& in) { return run_mapped(small, in, is_mapped, 3).outputs; },
      {{DType::kF32, {3}}}));
}

TEST(ProgramText, WhatIsReadComputesTheSame) {
  for (const bool is_differentiated : {false, true}) {
    Everything first, second;
    std::vector<std::vector<float>> results;
    for (Everything* each : {&first, &second}) {
      Program program = trace(std::ref(*each), {kVector});
      if (is_differentiated) program = reverse(program, {0}, {each->w});
      if (each == &second) program = parsed(program);
      set_print_sink([](const std::string&) {});
      std::vector<float> values;
      for (const Tensor& result : eval(program, {Tensor::from_host<float>({.1f, -.3f}, {2})})) {
        for (float value : result.to_host<float>()) values.push_back(value);
      }
      set_print_sink(nullptr);
      for (const Parameter& each_state : {each->odd, each->twin}) {
        values.push_back(each_state.value().item<float>());
      }
      results.push_back(values);
    }
    EXPECT_EQ(results[0], results[1]);
  }
}

TEST(ProgramText, LiteralsKeepTheirBits) {
  const std::vector<double> values{0.1, 1.0 / 3, 1e-45, 3.4e38, -0.0, INFINITY, -INFINITY, NAN};
  for (const double value : values) {
    const Program program = trace(
        [&](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{in[0] + Tensor::scalar(value),
                                     in[0] * Tensor::on_host<float>({1.5f}, {1, 1})};
        },
        {kScalar});
    expect_round_trip(program);
    const Program read = parsed(program);
    for (size_t i = 0; i < program.equations.size(); ++i) {
      for (size_t k = 0; k < program.equations[i].inputs.size(); ++k) {
        const Atom& atom = program.equations[i].inputs[k];
        if (!atom.var) {
          EXPECT_EQ(read.equations[i].inputs[k].literal.to_host_bytes(),
                    atom.literal.to_host_bytes());
        }
      }
    }
  }
  const Program whole = trace(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{in[0] + Tensor::on_host<int64_t>({(int64_t{1} << 62) + 1}, {})};
      },
      {{DType::kI64, {}}});
  EXPECT_THAT(to_string(parsed(whole)), HasSubstr("add a 4611686018427387905:i64"));
}

TEST(ProgramText, IsWrittenByHandToo) {
  const std::string text =
      "\n(x:f32[2],\ty:f32[2]) {\n\n"
      "  sum:f32[2]=add x y @ \"a b.cpp:7\"\n"
      "  p:bool[] = less[] 1:f32 2.5:f32\n"
      "  r:f32[2] = cond p sum\n    (s:f32[2]) {\n t:f32[2] = neg s\nreturn t\n}\n"
      "    (s:f32[2]) {\n      return s\n    }\n"
      "  return r 2:i32\n}\n\n";
  std::string fixed = text;
  fixed.replace(fixed.find("less[]"), 6, "less");
  const Program program = parse_program(fixed);
  const std::vector<Tensor> got =
      eval(program, {Tensor::from_host<float>({1, 2}, {2}), Tensor::ones({2})});
  EXPECT_EQ(got[0].to_host<float>(), (std::vector<float>{-2, -3}));
  EXPECT_EQ(got[1].item<int32_t>(), 2);
  EXPECT_THAT(to_string(program, {true}), HasSubstr("c:f32[2] = add a b @ \"a b.cpp:7\"\n"));
  EXPECT_THAT(message_of([&] { parse_program(text); }), HasSubstr("expected an attribute's name"));
}

struct Mistake {
  const char *text, *message;
};

TEST(ProgramText, MistakesNameTheirPlace) {
  const std::string head = "(a:f32[2], p:bool[]) {\n";
  const Mistake mistakes[] = {
      {"  b:f32[2] = neg c\n", "line 2, column 18: c is not defined"},
      {"  a:f32[2] = neg a\n", "line 2, column 3: a is defined twice"},
      {"  b:f32[3] = neg a\n", "line 2, column 3: neg gives f32[2], the text says f32[3]"},
      {"  b:f32[2] c:f32[2] = neg a\n", "neg gives f32[2], the text says f32[2] f32[2]"},
      {"  b:f32[2] = nge a\n", "line 2, column 3: [nge] unknown op; did you mean neg"},
      {"  b:f32[2] = add a\n", "[add] takes 2 inputs, got 1"},
      {"  b:f33[2] = neg a\n", "line 2, column 5: f33 is no element type"},
      {"  b:f32[-2] = neg a\n", "line 2, column 5: the shape is absurd"},
      {"  b:f32[4611686018427387904, 4] = neg a\n", "the shape is absurd"},
      {"  b:f32[1, 1, 1, 1, 1, 1, 1, 1, 1] = neg a\n", "rank 9, at most 8 is possible"},
      {"  b:f32[99999999999999999999] = neg a\n",
       "line 2, column 9: '99999999999999999999' is not a whole number of 64 bits"},
      {"  b:f32[2] neg a\n", "line 2, column 16: expected ':'"},
      {"  b:f32[] = reduce_sum[axes=[0] a\n", "expected ']'"},
      {"  b:f32[] = reduce_sum[axes] a\n", "line 2, column 28: expected '='"},
      {"  b:f32[2] = add a 2:f32[2]\n", "line 2, column 20: a literal has one element"},
      {"  b:f32[2] = add a 2x:f32\n", "line 2, column 20: '2x' is no f32"},
      {"  b:f32[2] = add a 300:u8\n", "'300' is no u8"},
      {"  b:f32[2] = neg a @ \"x.cpp\"\n", "line 2, column 22: expected \"file:line\""},
      {"  b:f32[2] = neg a @ \"x.cpp:1\n", "the text in quotes does not end"},
      {"  b:f32[2] = neg a }\n", "line 2, column 20: expected a variable or a number"},
      {"  captured b:f32[2]\n", "line 2, column 12: no tensor is bound for the captured b"},
      {"  state b:f32[2] = w\n", "line 2, column 20: no parameter is bound for w"},
      {"  update w <- a\n", "line 2, column 10: no parameter is bound for w"},
      {"  update io <- a\n", "parameter io is token, the new value f32[2]"},
      {"  state b:token = io\n  state c:token = io\n", "the parameter is a state already"},
      {"  state b:token = io\n  c:token = neg b\n", "[neg] input 0 is a token"},
      {"  state b:token = io\n  c:token = print[text=\"{}\"] b\n",
       "text has 1 places for 0 tensors"},
      {"  b:f32[2] = cond p a\n", "[cond] has 2 bodies, got 0"},
      {"  b:f32[2] = cond\n    () {\n      return\n    }\n    () {\n      return\n    }\n",
       "line 2, column 3: [cond] decides by 0 tensors, expected one bool[]"},
      {"  b:f32[2] = neg a\n    () {\n      return\n    }\n", "[neg] has no bodies, got 1"},
      {"  b:f32[2] = scan[consts=2, carried=0, length=1, reverse=0] a\n    () {\n      return\n    "
       "}\n",
       "[scan] an attribute counts 2 of 1 inputs"},
      {"  b:f32[2] = while[consts=0] a\n    (c:f32[2]) {\n      return\n    }\n    (c:f32[2]) {\n"
       "      return c\n    }\n",
       "[while] decides by 0 tensors"},
      {"  b:f32[2] = while[consts=1.5] a\n    () {\n return\n }\n    () {\n return\n }\n",
       "line 2"},
      {"  b:f32[2] = cond p a\n    (c:f32[2]) {\n      state d:token = io\n      return c\n    }\n",
       "line 4, column 12: a body is closed: it has no states"},
      {"  b:f32[2] = cond p a\n    (c:f32[2]) {\n      return a\n    }\n",
       "line 4, column 14: a is not defined"},
      {"  b:f32[2] = checkpoint[values=7, wanted=[]] a\n    () {\n      return\n    }\n",
       "[custom_vjp] 7 values of 1 inputs, 1 bodies"},
      {"  return a\n}\nmore\n", "line 4, column 1: expected nothing after the program"},
      {"", "line 2, column 1: expected an equation"},
  };
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.text);
    EXPECT_THAT(message_of(BALLAST_INVALID_ARGUMENT, [&] { parse_program(head + mistake.text); }),
                HasSubstr(mistake.message));
  }
  EXPECT_THAT(message_of([] { parse_program(""); }), HasSubstr("line 1, column 1: expected '('"));
}

TEST(ProgramText, WhatIsBoundMustFit) {
  const std::string text =
      "(a:f32[2]) {\n  captured b:f32[2]\n  state c:f32[2] = w\n  return b\n}\n";
  Parameter w(Tensor::ones({3}), "w");
  auto message = [&](const Bindings& bindings) {
    return message_of(BALLAST_INVALID_ARGUMENT, [&] { parse_program(text, bindings); });
  };
  EXPECT_THAT(message({{{"b", Tensor::ones({3})}}, {}}),
              HasSubstr("line 2, column 12: the captured b is f32[2], bound is f32[3]"));
  EXPECT_THAT(message({{{"b", Tensor::ones({2})}}, {{"w", w}}}),
              HasSubstr("the state is f32[2], parameter w is f32[3]"));
}

// Whatever happens to a text, it is a program or an error.
TEST(ProgramText, NoTextIsTrusted) {
  Everything everything;
  const Program program = eliminate_dead_code(trace(std::ref(everything), {kVector}));
  const std::string text = to_string(program, {true});
  const Bindings bindings = bindings_of(program);
  int accepted = 0;
  auto try_it = [&](const std::string& changed) {
    try {
      parse_program(changed, bindings);
      ++accepted;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), BALLAST_INVALID_ARGUMENT) << error.what() << "\n" << changed;
    }
  };
  for (size_t length = 0; length < text.size(); length += 3) try_it(text.substr(0, length));
  uint32_t random = 1;
  for (int i = 0; i < 3000; ++i) {
    std::string changed = text;
    for (int k = 0; k <= i % 3; ++k) {
      random = random * 1664525 + 1013904223;
      const size_t at = (random >> 8) % changed.size();
      random = random * 1664525 + 1013904223;
      changed[at] = "0123456789abef[](){}=,:\"#-@ \n\xff"[(random >> 8) % 31];
    }
    try_it(changed);
  }
  EXPECT_GT(accepted, 100) << "most changes of a line number are harmless";
}

TEST(ProgramText, BodiesNestOnlySoDeep) {
  std::string text = "(a:f32[], p:bool[]) {\n";
  for (int i = 0; i < 100000; ++i) text += "b:f32[] = cond p a\n(a:f32[], p:bool[]) {\n";
  EXPECT_THAT(message_of([&] { parse_program(text); }), HasSubstr("more than 64 bodies"));
}

}  // namespace
}  // namespace ballast::tests
