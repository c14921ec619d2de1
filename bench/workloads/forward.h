// The workloads that are functions without state: what they take and what they compute.
#pragma once

#include "bench/workloads/models.h"

#include <functional>
#include <map>
#include <string>

namespace workloads {

struct Forward {
  Names arrays;  // in the order in which `run` takes them
  std::function<Tensors(const Tensors&)> run;
  bool can_sink = false;  // its result is small: a sink keeps that of every step
};

const std::map<std::string, Forward>& forwards();

}  // namespace workloads
