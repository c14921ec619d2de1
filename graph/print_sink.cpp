#include "graph/print_sink.h"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <mutex>

namespace ballast::graph {

namespace {

struct Current {
  std::recursive_mutex mutex;  // a sink may print
  PrintSink sink;
};
Current& current() {
  static auto* instance = new Current;  // runs may end later than static objects
  return *instance;
}

}  // namespace

void set_print_sink(PrintSink sink) {
  const std::lock_guard lock(current().mutex);
  current().sink = std::move(sink);
}

void print_text(const std::string& text) {
  const std::lock_guard lock(current().mutex);
  const PrintSink sink = current().sink;
  if (!sink) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
    return;
  }
  try {
    sink(text);
  } catch (const std::exception& error) {
    spdlog::error("[print] the host's function threw: {}", error.what());
  } catch (...) {
    spdlog::error("[print] the host's function threw");
  }
}

}  // namespace ballast::graph
