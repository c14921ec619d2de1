#include "frontend/ops/print_sink.h"

#include <cstdio>
#include <exception>
#include <mutex>

namespace ballast {

namespace {

struct Sink {
  std::mutex mutex;
  std::function<void(const std::string&)> function;
};
Sink& current() {
  static auto* sink = new Sink;  // prints may come later than static objects live
  return *sink;
}

}  // namespace

void set_print_sink(std::function<void(const std::string& text)> sink) {
  std::lock_guard lock(current().mutex);
  current().function = std::move(sink);
}

void print_to_sink(void*, ballast_str text) noexcept {
  try {
    std::function<void(const std::string&)> function;
    {
      std::lock_guard lock(current().mutex);
      function = current().function;
    }
    if (function) return function(std::string(text.data, text.size));
    std::fwrite(text.data, 1, text.size, stdout);
    std::fflush(stdout);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ballast: [print] the sink threw: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "ballast: [print] the sink threw\n");
  }
}

}  // namespace ballast
