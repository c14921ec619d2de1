// A rival is a program of its own, so that no library of it meets the product or another rival in
// one process. It answers requests, one JSON object a line:
//
//   (at start)                    {"rival": "onednn", "version": "3.13.2"}
//   {"prepare": {case}}           {"variants": ["onednn", ...]}   none: this work is not its own
//   {"run": i, "count": n}        {"seconds": s}                  of variant i, n times, waited for
//   {"check": i}                  {"checksums": [[magnitude, sign], ...]}   one per output
//
// worker.py is the same for Python.
#pragma once

#include "bench/case.h"

#include <functional>
#include <string>
#include <vector>

namespace ballast::bench {

struct Variant {
  std::string name;
  std::function<void(int count)> run;                        // returns when the last run is done
  std::function<std::vector<std::vector<float>>()> results;  // dense, row-major, output by output
};

// What a rival does with a case; empty where it has nothing for it. May throw: then that is said.
using Prepare = std::function<std::vector<Variant>(const Case&)>;

// Serves until standard input ends.
int serve(const std::string& rival, const std::string& version, const Prepare& prepare);

}  // namespace ballast::bench
