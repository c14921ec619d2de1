// Another program, run to its end.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace ballast::tests {

struct Outcome {
  int status = 0;
  std::string text;  // of stdout
};

inline Outcome run_command(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer{};
  while (size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
    outcome.text.append(buffer.data(), count);
  }
  outcome.status = pclose(pipe);
  return outcome;
}

}  // namespace ballast::tests
