#include "frontend/state/checkpoint.h"

#include "frontend/program/trace.h"

#include <fmt/ranges.h>

#include <functional>

namespace ballast {

namespace {

void refuse_tracing(const char* call) {
  if (Trace::current()) {
    fail(BALLAST_FAILED_PRECONDITION, "[{}] called while a function is traced: there are no values",
         call);
  }
}

}  // namespace

void StateDict::insert(const std::string& name, Entry entry) {
  if (!entries_.emplace(name, std::move(entry)).second) {
    fail(BALLAST_INVALID_ARGUMENT, "[StateDict] the name \"{}\" is given twice", name);
  }
}

StateDict& StateDict::add(const std::string& prefix, const nn::Cell& cell) {
  return add(prefix, cell.parameters());
}

StateDict& StateDict::add(const std::string& prefix, const nn::Optimizer& optimizer) {
  return add(prefix, optimizer.states());
}

StateDict& StateDict::add(const std::string& prefix, const std::vector<Parameter>& parameters) {
  for (const Parameter& parameter : parameters) insert(prefix + parameter.name(), parameter);
  return *this;
}

StateDict& StateDict::add(const std::string& name, const Parameter& parameter) {
  insert(name, parameter);
  return *this;
}

StateDict& StateDict::add(const std::string& name, const Generator& generator) {
  insert(name, generator);
  return *this;
}

TensorMap StateDict::tensors() const {
  TensorMap values;
  for (const auto& [name, entry] : entries_) {
    const auto* generator = std::get_if<Generator>(&entry);
    values[name] = generator ? generator->state() : std::get<Parameter>(entry).value();
  }
  return values;
}

void save_checkpoint(const std::string& path, const TensorMap& tensors, const Metadata& metadata) {
  refuse_tracing("save_checkpoint");
  write_safetensors(path, tensors, metadata);
}

void save_checkpoint(const std::string& path, const StateDict& state, const Metadata& metadata) {
  refuse_tracing("save_checkpoint");
  write_safetensors(path, state.tensors(), metadata);
}

Checkpoint load_checkpoint(const std::string& path) {
  SafetensorsReader reader(path);
  Checkpoint checkpoint{{}, reader.metadata()};
  for (const auto& [name, type] : reader.types()) checkpoint.tensors[name] = reader.read(name);
  return checkpoint;
}

std::string LoadReport::to_string() const {
  std::string text = fmt::format("{} loaded", loaded.size());
  if (!missing.empty()) text += fmt::format("; missing: {}", fmt::join(missing, ", "));
  if (!unexpected.empty()) text += fmt::format("; unexpected: {}", fmt::join(unexpected, ", "));
  if (mismatched.empty()) return text;
  std::vector<std::string> rows;
  for (const Mismatch& row : mismatched) {
    rows.push_back(fmt::format("{} is {}, the file has {}", row.name,
                               ballast::to_string(row.expected), ballast::to_string(row.found)));
  }
  return text + fmt::format("; mismatched: {}", fmt::join(rows, ", "));
}

// One call of load_into: compares, takes every value to the device, and only then assigns.
class Loading {
 public:
  using Read = std::function<Tensor(const std::string&)>;

  Loading(const StateDict& state, const std::map<std::string, TensorType>& found)
      : state_(state), now_(state.tensors()) {
    for (const auto& [name, value] : now_) {
      const auto in_file = found.find(name);
      if (in_file == found.end()) {
        report_.missing.push_back(name);
      } else if (in_file->second != value.type()) {
        report_.mismatched.push_back({name, value.type(), in_file->second});
      } else {
        report_.loaded.push_back(name);
      }
    }
    for (const auto& [name, type] : found) {
      if (now_.count(name) == 0) report_.unexpected.push_back(name);
    }
    now_.clear();  // each value held would cost a copy at the next update
  }

  LoadReport run(LoadMode mode, const std::string& source, const Read& read) {
    if (mode == LoadMode::kStrict && !report_.is_complete()) {
      report_.loaded.clear();
      fail(BALLAST_INVALID_ARGUMENT, "[load_into] {} does not fit: {}", source,
           report_.to_string());
    }
    TensorMap values;
    for (const std::string& name : report_.loaded) values[name] = read(name).to_device();
    synchronize();  // a failed copy shows here
    for (const auto& [name, value] : values) {
      const StateDict::Entry& entry = state_.entries_.at(name);
      if (const auto* parameter = std::get_if<Parameter>(&entry)) {
        parameter->assign(value);
      } else {
        Generator(std::get<Generator>(entry)).set_state(value);
      }
    }
    return std::move(report_);
  }

 private:
  const StateDict& state_;
  TensorMap now_;
  LoadReport report_;
};

LoadReport load_into(const StateDict& state, const std::string& path, LoadMode mode) {
  refuse_tracing("load_into");
  SafetensorsReader reader(path);
  return Loading(state, reader.types()).run(mode, path, [&](const std::string& name) {
    return reader.read(name);
  });
}

LoadReport load_into(const StateDict& state, const TensorMap& tensors, LoadMode mode) {
  refuse_tracing("load_into");
  std::map<std::string, TensorType> types;
  for (const auto& [name, tensor] : tensors) types[name] = tensor.type();
  return Loading(state, types).run(mode, "the map of tensors", [&](const std::string& name) {
    return tensors.at(name);
  });
}

}  // namespace ballast
