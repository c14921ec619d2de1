// Effects: ops that do something beside computing, as print does.
//
// They are ordered by tokens, values of type u8[0]: an effect takes the token of the one before it
// and gives its own. No pass drops, merges or folds an effect, and an executable runs it on the
// host, at its place, before anything after it is submitted.
#pragma once

#include "device/stream.h"
#include "graph/graph.h"

#include <vector>

namespace ballast::graph {

TensorType token_type();

// Whether the node, or one inside of its regions, is an effect.
bool has_effect(const Node& node);

// Whether an executable runs the node between its command lists: an effect, or control flow.
bool runs_on_host(const Node& node);

// Waits for the inputs, the first of `buffers`, and runs the effect on their bytes.
void run_effect(device::Stream& stream, const OpCall& call, const device::BufferPtr* buffers);

}  // namespace ballast::graph
