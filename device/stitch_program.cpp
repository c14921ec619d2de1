#include "device/stitch_program.h"

#include "device/kernel.h"
#include "device/stitch_source.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace ballast::device {
namespace {

// How the workers share a call's groups. turn[0] holds the call's number (24 bits, from 40), how
// many groups were taken from the end (from 20) and from the beginning (from 0); turn[8], in a
// cache line of its own, how many are done. Every other worker takes from the end, so that a worker
// meets the same part of memory in call after call. Whoever ends a call's last group opens the next
// one; a worker that comes late finds the calls behind it closed.
constexpr const char* kTurns = R"(
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#if defined(__x86_64__)
#define BALLAST_PAUSE __builtin_ia32_pause()
#else
#define BALLAST_PAUSE
#endif
inline bool ballast_is_open(volatile __global ulong* turn, ulong call) {
  return turn[0] >> 40 == (call & 0xffffff);
}
inline uint ballast_take(volatile __global ulong* turn, ulong call, uint groups, bool from_end) {
  for (;;) {
    const ulong now = turn[0];
    const uint first = now & 0xfffff, last = now >> 20 & 0xfffff;
    if (now >> 40 != (call & 0xffffff) || first + last >= groups) return groups;
    if (atom_cmpxchg(turn, now, now + (from_end ? 1ul << 20 : 1ul)) != now) continue;
    return from_end ? groups - 1 - last : first;
  }
}
inline void ballast_end_group(volatile __global ulong* turn, ulong call, uint groups) {
  mem_fence(CLK_GLOBAL_MEM_FENCE);
  if (atom_inc(&turn[8]) + 1 != groups) return;
  turn[8] = 0;
  atom_xchg(turn, (call + 1 & 0xffffff) << 40);
}
inline void ballast_end_call(volatile __global ulong* turn, ulong call) {
  while (ballast_is_open(turn, call)) BALLAST_PAUSE;
  mem_fence(CLK_GLOBAL_MEM_FENCE);
}
)";
constexpr uint64_t kMaxGroups = 0xfffff;

// A value of `type` from its bits.
std::string literal(const std::string& type, const Arg& arg) {
  static const std::set<std::string> integers = {
      "char",         "uchar",         "short",  "ushort",        "int",
      "uint",         "long",          "ulong",  "unsigned char", "unsigned short",
      "unsigned int", "unsigned long", "size_t", "bool"};
  if (integers.count(type) != 0) return fmt::format("({})0x{:x}UL", type, arg.bits);
  if (type == "float") return fmt::format("as_float(0x{:x}u)", arg.bits);
  if (type == "double") return fmt::format("as_double(0x{:x}UL)", arg.bits);
  if (type == "half") return fmt::format("as_half((ushort)0x{:x})", arg.bits);
  throw TextRefusal{fmt::format("a scalar of type \"{}\"", type)};
}

using Counts = std::array<uint64_t, 3>;

Counts groups_of(const Launch& launch) {
  const Geometry geometry = geometry_of(launch);
  Counts groups;
  for (size_t d = 0; d < 3; ++d) groups[d] = geometry.global[d] / geometry.local[d];
  return groups;
}

// "for (size_t _g0 ...)" for a kind of ids, `n` of them by dimension.
std::string loops(char kind, const Counts& n) {
  std::string text;
  for (int d = 2; d >= 0; --d) {
    text += fmt::format("for (size_t _{0}{1} = 0; _{0}{1} < {2}; ++_{0}{1}) ", kind, d, n[d]);
  }
  return text;
}

// What both forms do: functions, and the statics that calls refer to.
class Writer {
 public:
  explicit Writer(size_t binding_count) : binding_count_(binding_count) {}
  virtual ~Writer() = default;

  void add(const Launch& launch, const std::vector<Operand>& operands) {
    if (program_.call_count++ == 0) program_.options = launch.source->options;
    if (program_.options != launch.source->options) {
      throw TextRefusal{"sources with different compiler options"};
    }
    unit_.add(*launch.source);
    const KernelFunction& function = unit_.kernel(*launch.source, launch.kernel);
    if (function.parameters.size() != launch.args.size()) {
      throw TextRefusal{fmt::format("{} has {} parameters, its launch {} arguments", launch.kernel,
                                    function.parameters.size(), launch.args.size())};
    }
    if (function.needs_one_item_groups && launch.local != Counts{1, 1, 1}) {
      throw TextRefusal{
          fmt::format("{} has work-groups of several items that share memory", launch.kernel)};
    }
    add_call(launch, function, operands);
  }

  StitchProgram finish() {
    program_.text = unit_.text() + text();
    return std::move(program_);
  }

 protected:
  virtual void add_call(const Launch& launch, const KernelFunction& function,
                        const std::vector<Operand>& operands) = 0;
  virtual std::string text() const = 0;
  // What a call passes for a buffer.
  virtual std::string address(const Operand& operand) = 0;

  std::string call_text(const Launch& launch, const KernelFunction& function,
                        const std::vector<Operand>& operands) {
    const Geometry geometry = geometry_of(launch);
    const Counts groups = groups_of(launch);
    std::string text = function.name + "(_g0, _g1, _g2, _l0, _l1, _l2";
    for (size_t d = 0; d < 3; ++d) text += fmt::format(", {}", geometry.local[d]);
    for (size_t d = 0; d < 3; ++d) text += fmt::format(", {}", groups[d]);
    for (size_t i = 0; i < launch.args.size(); ++i) {
      text += ", " + argument(launch.args[i], function.parameters[i], operands);
    }
    return text + ");\n";
  }

  size_t index_of(const BufferPtr& buffer) {
    std::vector<BufferPtr>& statics = program_.statics;
    const auto [at, is_new] = indices_.emplace(buffer.get(), statics.size());
    if (is_new) statics.push_back(buffer);
    return at->second;
  }

  // The kernel up to its first call of a step; `statics` are the first parameters.
  std::string head(const std::string& statics) const {
    std::string text = fmt::format("__kernel void {}({}", kStitchedEntry, statics);
    for (size_t i = 0; i < binding_count_; ++i) {
      text += fmt::format("__global uchar* _b{0}, ulong _stride{0}, ulong _slots{0}, ", i);
    }
    text += "__local ulong16* _shared, ulong _first, ulong _steps, ulong _backward) {\n";
    for (size_t i = 0; i < binding_count_; ++i) {
      text += fmt::format(
          "  ulong _slot{0} = _first % _slots{0};\n"
          "  if (_backward) _slot{0} = _slots{0} - 1 - _slot{0};\n",
          i);
    }
    return text + "  for (ulong _step = 0; _step < _steps; ++_step) {\n";
  }

  std::string tail() const {
    std::string text;
    for (size_t i = 0; i < binding_count_; ++i) {
      text += fmt::format(
          "    if (_backward) _slot{0} = (_slot{0} == 0 ? _slots{0} : _slot{0}) - 1;\n"
          "    else if (++_slot{0} == _slots{0}) _slot{0} = 0;\n",
          i);
    }
    return text + "  }\n}\n";
  }

  const StitchProgram& program() const { return program_; }
  size_t binding_count() const { return binding_count_; }

 private:
  std::string argument(const Arg& arg, const KernelParameter& parameter,
                       const std::vector<Operand>& operands) {
    if (arg.kind == Arg::Kind::kLocal) {
      program_.local_bytes = std::max(program_.local_bytes, arg.bits);
      return "(__local void*)_shared";
    }
    if (arg.kind == Arg::Kind::kScalar) return literal(parameter.type, arg);
    const Operand& operand = operands[arg.slot];
    if (!operand.buffer && operand.binding >= binding_count_) {
      throw TextRefusal{"a binding that is not declared"};
    }
    return "(__global void*)" + address(operand);
  }

  size_t binding_count_;
  StitchUnit unit_;
  StitchProgram program_;
  std::map<const Buffer*, size_t> indices_;  // of the statics
};

// One work-item makes all calls; statics are parameters.
class AloneWriter final : public Writer {
 public:
  using Writer::Writer;

 private:
  void add_call(const Launch& launch, const KernelFunction& function,
                const std::vector<Operand>& operands) override {
    calls_ += "    " + loops('g', groups_of(launch)) + loops('l', launch.local) +
              call_text(launch, function, operands);
  }

  std::string address(const Operand& operand) override {
    if (operand.buffer) return fmt::format("_s{}", index_of(operand.buffer));
    return fmt::format("(_b{0} + _slot{0} * _stride{0})", operand.binding);
  }

  std::string text() const override {
    std::string statics;
    for (size_t i = 0; i < program().statics.size(); ++i) {
      statics += fmt::format("__global uchar* _s{}, ", i);
    }
    return head(statics) + calls_ + tail();
  }

  std::string calls_;
};

// Workers go through tables. Calls that differ in their buffers alone, as those of equal layers,
// are one case: the compiler sees each kernel with its sizes once.
class WorkersWriter final : public Writer {
 public:
  using Writer::Writer;

 private:
  void add_call(const Launch& launch, const KernelFunction& function,
                const std::vector<Operand>& operands) override {
    const Counts groups = groups_of(launch);
    const uint64_t count = groups[0] * groups[1] * groups[2];
    if (count == 0 || count > kMaxGroups) {
      throw TextRefusal{fmt::format("{} has {} groups", launch.kernel, count)};
    }
    first_ = operands_.size();
    const std::string call =
        fmt::format("        const size_t _g0 = _t % {0}, _g1 = _t / {0} % {1}, _g2 = _t / {2};\n",
                    groups[0], groups[1], groups[0] * groups[1]) +
        "        " + loops('l', launch.local) + call_text(launch, function, operands);
    const auto [known, is_new] = cases_.emplace(call, cases_.size());
    if (is_new) {
      texts_ += fmt::format("      case {}: {{\n{}        break;\n      }}\n", known->second, call);
    }
    calls_.push_back(fmt::format("{{{}, {}, {}}}", known->second, count, first_));
  }

  // Statics are numbered before bindings, whose place behind them is known at the end.
  std::string address(const Operand& operand) override {
    operands_.push_back(operand.buffer ? fmt::format("{}", index_of(operand.buffer))
                                       : fmt::format("STATICS + {}", operand.binding));
    return fmt::format("OPERAND({})", operands_.size() - 1 - first_);
  }

  std::string text() const override {
    std::string bindings;
    for (size_t i = 0; i < binding_count(); ++i) {
      bindings += fmt::format("    _at[{0}] = _b{0} + _slot{0} * _stride{0};\n", i);
    }
    return fmt::format(
        "{}#define STATICS {}\n"
        "#define OPERAND(i) \\\n"
        "  (_o[i] < STATICS ? (__global uchar*)_addresses[_o[i]] : _at[_o[i] - STATICS])\n"
        "__constant uint ballast_calls[{}][3] = {{{}}};\n"
        "__constant uint ballast_operands[] = {{{}}};\n"
        "{}"
        "    __global uchar* _at[{}];\n{}"
        "    for (uint _i = 0; _i < {}; ++_i, ++_call) {{\n"
        "      const uint _groups = ballast_calls[_i][1];\n"
        "      __constant const uint* _o = &ballast_operands[ballast_calls[_i][2]];\n"
        "      for (uint _t; (_t = ballast_take(_turn, _call, _groups, get_group_id(0) % 2)) < "
        "_groups;\n"
        "           ballast_end_group(_turn, _call, _groups)) switch (ballast_calls[_i][0]) {{\n"
        "{}      }}\n"
        "      ballast_end_call(_turn, _call);\n"
        "    }}\n{}",
        kTurns, program().statics.size(), calls_.size(), fmt::join(calls_, ", "),
        operands_.empty() ? "0" : fmt::to_string(fmt::join(operands_, ", ")),
        head("__global const ulong* _addresses, volatile __global ulong* _turn, ulong _call, "),
        std::max<size_t>(binding_count(), 1), bindings, calls_.size(), texts_, tail());
  }

  std::map<std::string, size_t> cases_;        // by what they call, their numbers
  std::string texts_;                          // of the cases
  std::vector<std::string> calls_, operands_;  // initializers of the tables
  size_t first_ = 0;                           // of the call's operands
};

}  // namespace

StitchProgram write_stitched(const CommandList& list, size_t binding_count, bool has_workers) {
  if (list.has_copies()) throw TextRefusal{"the list has copies"};
  if (list.launch_count() == 0) throw TextRefusal{"the list is empty"};
  AloneWriter alone(binding_count);
  WorkersWriter workers(binding_count);
  Writer& writer = has_workers ? static_cast<Writer&>(workers) : alone;
  for (size_t i = 0; i < list.launch_count(); ++i) {
    writer.add(list.launches()[i], list.operands()[i]);
  }
  return writer.finish();
}

}  // namespace ballast::device
