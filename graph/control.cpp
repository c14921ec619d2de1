#include "graph/control.h"

#include "graph/effect.h"
#include "graph/sink.h"

#include <algorithm>

namespace ballast::graph {

using device::Buffer;
using device::BufferPtr;
using device::Code;
using device::DevicePtr;
using device::fail;
using device::Operand;
using device::Stream;

namespace {

// The region with `carried` of its inputs, from number `first` on, as states; as the body of a loop
// (`is_body`) its first outputs are what the states become.
Graph loop_form(const Graph& region, size_t first, size_t carried, bool is_body) {
  Graph graph;
  std::vector<ValueId> map(region.value_count(), kNoValue);
  size_t input = 0;
  for (ValueId id = 0; id < region.value_count(); ++id) {
    const Value& value = region.value(id);
    if (value.kind == ValueKind::kConstant) map[id] = graph.add_constant(value.type, value.data);
    if (value.kind != ValueKind::kInput) continue;
    const bool is_carried = first <= input && input < first + carried;
    map[id] = is_carried ? graph.add_state(value.name, value.type)
                         : graph.add_input(value.name, value.type);
    ++input;
  }
  auto mapped = [&](const std::vector<ValueId>& ids) {
    std::vector<ValueId> result;
    for (ValueId id : ids) result.push_back(map[id]);
    return result;
  };
  for (const Node& node : region.nodes()) {
    const std::vector<ValueId> outputs =
        graph.add_node(node.op->name, node.attrs, mapped(node.inputs), node.where, node.regions);
    for (size_t i = 0; i < outputs.size(); ++i) map[node.outputs[i]] = outputs[i];
  }
  std::vector<ValueId> outputs = mapped(region.outputs());
  if (is_body) {
    for (size_t i = 0; i < carried; ++i) graph.set_update(graph.states()[i], outputs[i]);
    outputs.erase(outputs.begin(), outputs.begin() + static_cast<int64_t>(carried));
  }
  graph.set_outputs(std::move(outputs));
  return graph;
}

// `times` runs of an executable.
void add(Control::Cost& cost, const Executable& executable, uint64_t times) {
  cost.launches += executable.launch_count() * times;
  cost.submits += executable.replay() == device::Replay::kStitch && times > 0
                      ? 1
                      : executable.submit_count() * times;
  cost.arena_bytes += executable.memory().arena_bytes;
  cost.naive_bytes += executable.memory().naive_bytes;
  cost.lower_bound_bytes += executable.memory().lower_bound_bytes;
  cost.constant_bytes += executable.constant_bytes();
}

class Cond : public Control {
 public:
  Cond(const DevicePtr& device, const Node& node, std::vector<Operand> operands,
       const CompileOptions& options)
      : Control(std::move(operands)),
        input_count_(node.inputs.size()),
        output_count_(node.outputs.size()) {
    for (const auto& region : node.regions) {
      branches_.push_back(std::make_unique<Executable>(device, *region, options));
    }
  }

  void run(Stream& stream, const std::vector<BufferPtr>& bindings,
           const CancelFlag* is_cancelled) override {
    uint8_t is_true = 0;
    stream.read(&is_true, *at(0, bindings), 0, 1);
    std::vector<InputBinding> inputs;
    std::vector<BufferPtr> outputs;
    for (size_t i = 1; i < input_count_; ++i) inputs.push_back({at(i, bindings), nullptr});
    for (size_t i = 0; i < output_count_; ++i) outputs.push_back(at(input_count_ + i, bindings));
    branches_[is_true != 0 ? 0 : 1]->run(stream, inputs, outputs, is_cancelled);
  }

  Cost cost() const override {
    Cost sum, longest;
    for (const auto& branch : branches_) {
      Cost own;
      add(own, *branch, 1);
      add(sum, *branch, 1);
      longest.launches = std::max(longest.launches, own.launches);
      longest.submits = std::max(longest.submits, own.submits);
    }
    sum.launches = longest.launches;
    sum.submits = longest.submits;
    return sum;
  }

 private:
  size_t input_count_, output_count_;
  std::vector<std::unique_ptr<Executable>> branches_;
};

// What while and scan share: the carry in buffers of its own, which are states of executables.
class Loop : public Control {
 protected:
  Loop(const DevicePtr& device, const Node& node, std::vector<Operand> operands, size_t carried)
      : Control(std::move(operands)),
        consts_(static_cast<size_t>(int_attr(node.attrs, "consts"))),
        input_count_(node.inputs.size()) {
    const Graph& body = *node.regions.back();
    for (size_t i = 0; i < carried; ++i) {
      carry_.push_back(Buffer::create(device, body.value(body.outputs()[i]).type.bytes()));
    }
  }

  std::shared_ptr<Executable> compile(const DevicePtr& device, const Graph& region,
                                      const CompileOptions& options, bool is_body) const {
    auto executable = std::make_shared<Executable>(
        device, loop_form(region, consts_, carry_.size(), is_body), options);
    for (size_t i = 0; i < carry_.size(); ++i) executable->bind_state(i, carry_[i]);
    return executable;
  }

  void copy_in(Stream& stream, const std::vector<BufferPtr>& bindings) const {
    for (size_t i = 0; i < carry_.size(); ++i) {
      stream.copy(*carry_[i], 0, *at(consts_ + i, bindings), 0, carry_[i]->size());
    }
  }
  void copy_out(Stream& stream, const std::vector<BufferPtr>& bindings) const {
    for (size_t i = 0; i < carry_.size(); ++i) {
      stream.copy(*at(input_count_ + i, bindings), 0, *carry_[i], 0, carry_[i]->size());
    }
  }

  Cost cost_of_carry() const {
    Cost cost;
    for (const BufferPtr& buffer : carry_) cost.arena_bytes += buffer->size();
    cost.naive_bytes = cost.lower_bound_bytes = cost.arena_bytes;
    return cost;
  }

  size_t consts_, input_count_;
  std::vector<BufferPtr> carry_;
};

class While : public Loop {
 public:
  While(const DevicePtr& device, const Node& node, std::vector<Operand> operands,
        const CompileOptions& options)
      : Loop(device, node, std::move(operands), node.outputs.size()),
        condition_(compile(device, *node.regions[0], options, false)),
        body_(compile(device, *node.regions[1], options, true)),
        flag_(Buffer::create(device, 1)) {}

  void run(Stream& stream, const std::vector<BufferPtr>& bindings,
           const CancelFlag* is_cancelled) override {
    copy_in(stream, bindings);
    std::vector<InputBinding> consts;
    for (size_t i = 0; i < consts_; ++i) consts.push_back({at(i, bindings), nullptr});
    for (uint64_t steps = 0; holds(stream, consts, is_cancelled); ++steps) {
      if (is_cancelled != nullptr && *is_cancelled) {
        fail(Code::kCancelled, "[while] cancelled after {} steps", steps);
      }
      body_->run(stream, consts, {}, is_cancelled);
    }
    copy_out(stream, bindings);
  }

  Cost cost() const override {
    Cost cost = cost_of_carry();
    add(cost, *condition_, 1);
    add(cost, *body_, 1);
    return cost;
  }

 private:
  bool holds(Stream& stream, const std::vector<InputBinding>& consts,
             const CancelFlag* is_cancelled) {
    uint8_t is_true = 0;
    condition_->run(stream, consts, {flag_}, is_cancelled);
    stream.read(&is_true, *flag_, 0, 1);
    return is_true != 0;
  }

  std::shared_ptr<Executable> condition_, body_;
  BufferPtr flag_;
};

class Scan : public Loop {
 public:
  Scan(const DevicePtr& device, const Node& node, std::vector<Operand> operands,
       const CompileOptions& options)
      : Loop(device, node, std::move(operands),
             static_cast<size_t>(int_attr(node.attrs, "carried"))),
        output_count_(node.outputs.size()),
        length_(static_cast<uint64_t>(int_attr(node.attrs, "length"))),
        direction_(int_attr(node.attrs, "reverse") != 0 ? Direction::kBackward
                                                        : Direction::kForward),
        sink_(compile(device, *node.regions[0], options, true)) {}

  void run(Stream& stream, const std::vector<BufferPtr>& bindings,
           const CancelFlag* is_cancelled) override {
    copy_in(stream, bindings);
    if (length_ > 0) {
      std::vector<Queue> inputs, outputs;
      for (size_t i = 0; i < consts_; ++i) inputs.push_back({at(i, bindings), nullptr, 1});
      for (size_t i = consts_ + carry_.size(); i < input_count_; ++i) {
        inputs.push_back({at(i, bindings), nullptr, length_});
      }
      for (size_t i = carry_.size(); i < output_count_; ++i) {
        outputs.push_back({at(input_count_ + i, bindings), nullptr, length_});
      }
      sink_.run(stream, length_, inputs, outputs, direction_, is_cancelled);
    }
    copy_out(stream, bindings);
  }

  Cost cost() const override {
    Cost cost = cost_of_carry();
    add(cost, sink_.executable(), length_);
    return cost;
  }

 private:
  size_t output_count_;
  uint64_t length_;
  Direction direction_;
  Sink sink_;
};

class Effect : public Control {
 public:
  Effect(const Node& node, std::vector<Operand> operands, std::vector<TensorType> inputs)
      : Control(std::move(operands)), call_{node.op, node.attrs, std::move(inputs)} {}

  void run(Stream& stream, const std::vector<BufferPtr>& bindings, const CancelFlag*) override {
    std::vector<BufferPtr> inputs;
    for (size_t i = 0; i < call_.inputs.size(); ++i) inputs.push_back(at(i, bindings));
    run_effect(stream, call_, inputs.data());
  }

  Cost cost() const override { return {}; }

 private:
  OpCall call_;
};

}  // namespace

bool has_loop(const Node& node) {
  return any_within(node,
                    [](const Node& n) { return n.op->name == "while" || n.op->name == "scan"; });
}

std::unique_ptr<Control> Control::make(const DevicePtr& device, const Graph& graph,
                                       const Node& node, std::vector<Operand> operands,
                                       const CompileOptions& options) {
  if (node.op->effect) {
    return std::make_unique<Effect>(node, std::move(operands), graph.types(node.inputs));
  }
  const std::string& name = node.op->name;
  if (name == "cond") return std::make_unique<Cond>(device, node, std::move(operands), options);
  if (name == "while") return std::make_unique<While>(device, node, std::move(operands), options);
  if (name == "scan") return std::make_unique<Scan>(device, node, std::move(operands), options);
  fail(Code::kInternal, "[{}] regions that nothing runs", name);
}

void Control::rebind(const Buffer* from, const BufferPtr& to) {
  for (Operand& operand : operands_) {
    if (operand.buffer.get() == from) operand.buffer = to;
  }
}

}  // namespace ballast::graph
