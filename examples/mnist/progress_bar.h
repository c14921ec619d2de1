// Shows how training goes: one line that is rewritten on a terminal, else about twenty plain lines.
#pragma once

#include "examples/mnist/training.h"

namespace mnist {

class ProgressBar {
 public:
  ProgressBar();
  void show(const Progress& progress);

 private:
  bool is_terminal_;
  uint64_t next_line_ = 0;  // step of the next plain line
};

}  // namespace mnist
