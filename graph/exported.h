// Exported functions: a graph with the values of its states in one file.
//
//   ballast.function 1
//   graph 1234 states 5678 checksum 0123456789abcdef
//   <the graph's text, graph/text.h, 1234 bytes>
//   <the states' elements in the order of their declarations, 5678 bytes>
//
// The checksum is XXH3, 64 bits, of all that follows its line. frontend/modes/export.cpp writes it.
#pragma once

#include "graph/executable.h"

#include <memory>
#include <string>

namespace ballast::graph {

// Compiles the file's graph, its states bound to buffers of the executable's own. Throws kNotFound
// where there is no such file, kInvalidArgument for one that is damaged, truncated or of another
// format or version; the message names the file and what is wrong.
std::shared_ptr<Executable> load_exported(const device::DevicePtr& device, const std::string& path,
                                          const CompileOptions& options);

}  // namespace ballast::graph
