#include "tests/op_table.h"
#include "tests/samples.h"

#include <algorithm>
#include <cmath>

namespace ballast::tests {

namespace {

std::vector<bool> reduced_axes(const Shape& shape, const Attrs& attrs) {
  bool has_axis = std::any_of(attrs.begin(), attrs.end(),
                              [](const auto& attr) { return attr.first == "axis"; });
  std::vector<int64_t> axes =
      has_axis ? std::vector<int64_t>{int_attr(attrs, "axis")} : ints_attr(attrs, "axes");
  std::vector<bool> is_reduced(shape.size(), axes.empty());
  for (int64_t axis : axes) {
    is_reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(shape.size()) : axis)] =
        true;
  }
  return is_reduced;
}

Shape reduced(const Shape& shape, const Attrs& attrs) {
  const std::vector<bool> is_reduced = reduced_axes(shape, attrs);
  Shape result;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (!is_reduced[axis]) result.push_back(shape[axis]);
    if (is_reduced[axis] && attr_or<int64_t>(attrs, "keep_dims", 0) != 0) result.push_back(1);
  }
  return result;
}

// Gathers, per output element, the input elements that are reduced into it, in order.
ReferenceOp reduction(std::function<double(const Elements&)> function) {
  return [function](const std::vector<HostArray>& inputs, const Attrs& attrs,
                    std::vector<HostArray>& outputs) {
    const Shape& shape = inputs[0].type.shape;
    const std::vector<bool> is_reduced = reduced_axes(shape, attrs);
    Shape kept;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (!is_reduced[axis]) kept.push_back(shape[axis]);
    }
    std::vector<Elements> groups(outputs[0].values.size());
    for (size_t i = 0; i < inputs[0].values.size(); ++i) {
      Index index = index_of(i, shape);
      Index target;
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (!is_reduced[axis]) target.push_back(index[axis]);
      }
      groups[flat_of(target, kept)].push_back(inputs[0].values[i]);
    }
    for (size_t i = 0; i < groups.size(); ++i) outputs[0].values[i] = function(groups[i]);
  };
}

double sum(const Elements& e) {
  double total = 0;
  for (double value : e) total += value;
  return total;
}

double product(const Elements& e) {
  double total = 1;
  for (double value : e) total *= value;
  return total;
}

double extremum(const Elements& e, double (*better)(double, double)) {
  double best = e.at(0);
  for (double value : e) best = std::isnan(best) ? best : better(value, best);
  return best;
}

// The lowest index of a NaN, else of the extremum.
double position(const Elements& e, double (*better)(double, double)) {
  double best = extremum(e, better);
  for (size_t i = 0; i < e.size(); ++i) {
    if (e[i] == best || (std::isnan(best) && std::isnan(e[i]))) return static_cast<double>(i);
  }
  return -1;
}

void add_reductions(OpFamilies& table) {
  auto attrs = [](std::vector<int64_t> axes, int64_t keep_dims) {
    return Attrs{{"axes", std::move(axes)}, {"keep_dims", keep_dims}};
  };
  struct Call {
    Shape shape;
    std::vector<int64_t> axes;
    int64_t keep_dims;
  };
  const std::vector<Call> calls = {
      {{7}, {}, 0},        {{3, 5}, {0}, 0}, {{3, 5}, {1}, 1}, {{2, 3, 4}, {0, 2}, 0},
      {{2, 3, 4}, {1}, 1}, {{3, 4}, {}, 1},  {{}, {}, 0},      {{1, 6}, {0}, 0},
      {{2, 130}, {1}, 0}};
  for (const Call& call : calls) {
    for (const char* op :
         {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"}) {
      bool is_small = TensorType{DType::kF32, call.shape}.elements() < 100;
      OpCase& added =
          table.add(op, {real(call.shape, 0.6, 1.6)}, attrs(call.axes, call.keep_dims), is_small);
      added.rtol = 1e-4;
    }
    for (const char* op : {"reduce_any", "reduce_all"}) {
      table.add(op, {boolean(call.shape)}, attrs(call.axes, call.keep_dims));
    }
  }
  for (const Shape& shape : {Shape{3, 5}, Shape{5, 3}, Shape{4, 33}}) {
    const int64_t axis = shape[0] == 5 ? 0 : 1;
    table.add("reduce_prod", {whole(shape, 3)}, attrs({axis}, 0));
    for (const char* op : {"argmax", "argmin"}) {
      table.add(op, {whole(shape, 9)}, {{"axis", axis}});
    }
  }
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_prod"}) {
    table.add(op, {real({0, 3}, 0, 1)}, attrs({0}, 0));
  }
  for (const char* op : {"reduce_max", "reduce_min", "reduce_sum", "reduce_prod"}) {
    table.add(op, {special()}, attrs({}, 0));
  }
  for (const char* op : {"argmax", "argmin"}) {
    table.add(op, {real({4, 9}, -2, 2)}, {{"axis", int64_t{1}}});
    table.add(op, {real({4, 9, 3}, -2, 2)}, {{"axis", int64_t{1}}});
    table.add(op, {special()}, {{"axis", int64_t{0}}});
    HostArray ties = whole({5, 12}, 3);
    ties.type.dtype = DType::kF32;
    table.add(op, {ties}, {{"axis", int64_t{1}}});
  }
}

// Rows (along `axis`) of numbers among which stand: nothing special, one infinity, infinities of
// both signs, infinity beside 0; and rows of infinities only. No NaN goes in.
HostArray infinities(int64_t length, int64_t axis) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<Elements> rows = {{},        {kInf},     {-kInf},      {kInf, -kInf},
                                      {0, kInf}, {-kInf, 0}, {kInf, kInf}, {-1e30f, -kInf}};
  const auto count = static_cast<int64_t>(rows.size()) + 2;
  HostArray array = real(axis == 1 ? Shape{count, length} : Shape{length, count}, -2, 2);
  const auto at = [&](int64_t row, int64_t i) -> double& {
    return array.values[static_cast<size_t>(axis == 1 ? row * length + i : i * count + row)];
  };
  for (int64_t row = 0; row < count; ++row) {
    for (int64_t i = 0; i < length; ++i) {
      if (row + 2 >= count) at(row, i) = row + 1 == count ? -kInf : kInf;
    }
    if (row + 2 >= count) continue;
    // The first one at a place of its own, the second at the end.
    const Elements& values = rows[static_cast<size_t>(row)];
    if (!values.empty()) at(row, row % (length - 1)) = values[0];
    if (values.size() > 1) at(row, length - 1) = values[1];
  }
  return array;
}

void add_infinities(OpFamilies& table) {
  for (int64_t length : {5, 130}) {
    for (int64_t axis : {0, 1}) {
      const HostArray values = infinities(length, axis);
      for (const char* op :
           {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod"}) {
        table.add(op, {values}, {{"axes", std::vector<int64_t>{axis}}, {"keep_dims", axis}}).rtol =
            1e-4;
      }
      for (const char* op : {"argmax", "argmin"}) {
        table.add(op, {values}, {{"axis", axis}, {"keep_dims", axis}});
      }
      for (int64_t reverse : {0, 1}) {
        table
            .add("cumsum", {values}, {{"axis", axis}, {"exclusive", reverse}, {"reverse", reverse}})
            .atol = 1e-4;
      }
    }
  }
}

void cumsum(const std::vector<HostArray>& inputs, const Attrs& attrs,
            std::vector<HostArray>& outputs) {
  const Shape& shape = inputs[0].type.shape;
  const auto axis = static_cast<size_t>(int_attr(attrs, "axis"));
  const bool is_reverse = int_attr(attrs, "reverse") != 0;
  const bool is_exclusive = int_attr(attrs, "exclusive") != 0;
  for (size_t i = 0; i < outputs[0].values.size(); ++i) {
    Index at = index_of(i, shape);
    if (at[axis] != 0) continue;
    double total = 0;  // along the line that begins here
    for (int64_t step = 0; step < shape[axis]; ++step) {
      at[axis] = is_reverse ? shape[axis] - 1 - step : step;
      const size_t place = flat_of(at, shape);
      const double before = total;
      total += inputs[0].values[place];
      outputs[0].values[place] = is_exclusive ? before : total;
    }
  }
}

void add_cumulative(OpFamilies& table) {
  struct Call {
    Shape shape;
    int64_t axis;
  };
  int64_t mode = 0;
  for (const Call& call : std::vector<Call>{{{5}, 0},
                                            {{3, 4}, 1},
                                            {{3, 4}, 0},
                                            {{2, 3, 2}, 1},
                                            {{9, 32}, 0},
                                            {{40, 3}, 0},
                                            {{2, 50}, 1},
                                            {{1}, 0},
                                            {{0, 3}, 1}}) {
    for (int repeat = 0; repeat < 2; ++repeat, ++mode) {
      const Attrs attrs = {
          {"axis", call.axis}, {"exclusive", mode & 1}, {"reverse", mode >> 1 & 1}};
      const bool is_small = TensorType{DType::kF32, call.shape}.elements() < 20;
      table.add("cumsum", {real(call.shape, -1, 1)}, attrs, is_small).atol = 1e-5;
      table.add("cumsum", {whole(call.shape, 100)}, attrs);
    }
  }
  for (DType dtype : {DType::kI64, DType::kU8}) {
    for (const char* op : {"argmax", "argmin"}) {
      table.add(op, {whole({5, 33}, 90, dtype)}, {{"axis", int64_t{1}}});
      table.add(op, {whole({5, 33}, 90, dtype)}, {{"axis", int64_t{0}}});
    }
  }
  table.add("reduce_prod", {whole({7, 8}, 5, DType::kI64)},
            {{"axes", std::vector<int64_t>{1}}, {"keep_dims", int64_t{0}}});
  for (const char* op : {"reduce_sum", "reduce_max", "reduce_min"}) {
    table.add(op, {whole({3, 20}, 90, DType::kI64)},
              {{"axes", std::vector<int64_t>{1}}, {"keep_dims", int64_t{0}}});
  }
  for (const char* op : {"reduce_max", "reduce_min"}) {
    table.add(op, {whole({3, 20}, 90, DType::kU8)},
              {{"axes", std::vector<int64_t>{0}}, {"keep_dims", int64_t{0}}});
  }
}
}  // namespace

void add_reduce(OpFamilies& table) {
  table.references.insert({
      {"cumsum", cumsum},
      {"reduce_sum", reduction(sum)},
      {"reduce_mean",
       reduction([](const Elements& e) { return sum(e) / static_cast<double>(e.size()); })},
      {"reduce_max", reduction([](const Elements& e) { return extremum(e, larger); })},
      {"reduce_min", reduction([](const Elements& e) { return extremum(e, smaller); })},
      {"reduce_prod", reduction(product)},
      {"reduce_any", reduction([](const Elements& e) { return truth(sum(e) > 0); })},
      {"reduce_all",
       reduction([](const Elements& e) { return truth(sum(e) == static_cast<double>(e.size())); })},
      {"argmax", reduction([](const Elements& e) { return position(e, larger); })},
      {"argmin", reduction([](const Elements& e) { return position(e, smaller); })},
  });
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min", "reduce_prod",
                         "reduce_any", "reduce_all"}) {
    table.types[op] = [](const Types& in, const Attrs& attrs) {
      return Types{{in[0].dtype, reduced(in[0].shape, attrs)}};
    };
  }
  for (const char* op : {"argmax", "argmin"}) {
    table.types[op] = [](const Types& in, const Attrs& attrs) {
      return Types{{DType::kI32, reduced(in[0].shape, attrs)}};
    };
  }
  table.types["cumsum"] = like({0});
  add_reductions(table);
  add_infinities(table);
  add_cumulative(table);
}

void draw_reduce(OpFamilies& table, Draw& draw) {
  Shape shape = draw.shape(1 + draw.below(4), 100000);
  for (int64_t& extent : shape) extent = std::max<int64_t>(extent, 1);
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (draw.one_in(2)) axes.push_back(axis);
  }
  const auto count = static_cast<double>(TensorType{DType::kF32, shape}.elements());
  const Attrs attrs = {{"axes", axes}, {"keep_dims", draw.below(2)}};
  const HostArray x = real(shape, -1, 1);
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
    table.add(op, {x}, attrs).atol = 1e-6 + 1e-7 * count;
  }
  table.add("reduce_prod", {real(shape, 0.99, 1.01)}, attrs).rtol = 1e-5 + 1e-7 * count;
  for (const char* op : {"reduce_any", "reduce_all"}) {
    HostArray truths = whole(shape, draw.pick<int64_t>({2, 1000}), DType::kI32);
    for (double& value : truths.values) value = truth((value == 0) == (op[7] == 'n'));
    truths.type.dtype = DType::kBool;
    table.add(op, {truths}, attrs);
  }
  const HostArray whole_numbers = whole(shape, 90, draw.pick({DType::kI32, DType::kI64}));
  for (const char* op : {"reduce_sum", "reduce_max", "reduce_min"}) {
    table.add(op, {whole_numbers}, attrs);
  }
  const int64_t axis = draw.below(rank);
  for (const char* op : {"argmax", "argmin"}) {
    const Attrs along = {{"axis", axis}, {"keep_dims", draw.below(2)}};
    table.add(op, {x}, along);
    HostArray ties = whole(shape, 50, draw.pick({DType::kI32, DType::kI64, DType::kU8}));
    table.add(op, {ties}, along);
  }
  const Attrs order = {{"axis", axis}, {"exclusive", draw.below(2)}, {"reverse", draw.below(2)}};
  // One rounding at each step.
  table.add("cumsum", {x}, order).atol =
      1e-6 + 5e-8 * static_cast<double>(shape[static_cast<size_t>(axis)]);
  table.add("cumsum", {whole_numbers}, order);
}

}  // namespace ballast::tests
