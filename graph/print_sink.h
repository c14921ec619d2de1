// Where print nodes write: standard output, or what the host has set. Thread-safe: texts arrive
// whole, one at a time, and those of one thread in the order in which it printed them.
#pragma once

#include <functional>
#include <string>

namespace ballast::graph {

using PrintSink = std::function<void(const std::string& text)>;

// An empty function stands for standard output.
void set_print_sink(PrintSink sink);
// What the sink throws is logged and goes no further: a run is not left half done for it.
void print_text(const std::string& text);

}  // namespace ballast::graph
