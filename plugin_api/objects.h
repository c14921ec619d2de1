// The objects behind each kind of handle, and short names for their tables.
#pragma once

#include "ballast/ballast.h"
#include "device/event.h"
#include "graph/prepared_op.h"
#include "graph/sink.h"
#include "plugin_api/handles.h"

namespace ballast::plugin_api {

// A graph under construction; one caller at a time ([S]).
struct GraphObject {
  graph::Graph graph;
  std::string text;  // of the last graph_to_text
};

using Devices = HandleTable<ballast_device, device::Device, 1>;
using Buffers = HandleTable<ballast_buffer, device::Buffer, 2>;
using Streams = HandleTable<ballast_stream, device::Stream, 3>;
using Events = HandleTable<ballast_event, device::Event, 4>;
using Ops = HandleTable<ballast_op, graph::PreparedOp, 5>;
using Graphs = HandleTable<ballast_graph, GraphObject, 6>;
using Executables = HandleTable<ballast_executable, graph::Executable, 7>;
using Sinks = HandleTable<ballast_sink, graph::Sink, 8>;

// Counts one ABI call that puts work on a device or waits for it.
inline void count_host_call(device::Device& device) { ++device.counters().host_calls; }

}  // namespace ballast::plugin_api
