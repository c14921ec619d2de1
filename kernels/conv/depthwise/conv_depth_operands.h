// What plans of depthwise convolutions share. Plain functions; any thread.
#pragma once

#include "kernels/conv/conv_arguments.h"
#include "kernels/plan/halide_runtime.h"

#include <initializer_list>
#include <string>
#include <vector>

namespace ballast::kernels::depth {

bool are_all(int64_t wanted, std::initializer_list<int64_t> values);
// A square window without strides and dilation.
bool is_step(const ConvConfig& c, int64_t window);
// The same with results of the size of x; dx of one is one.
bool is_same(const ConvConfig& c, int64_t window);
bool has_one_channel(const ConvConfig& c);  // to a group, of x
// A square window with strides of 2 and without dilation, of one channel of x and one of y to a
// group.
bool is_two_apart(const ConvConfig& c, int64_t window);
// The same behind half a window of zeros, of planes of even extents that it halves.
bool halves_planes(const ConvConfig& c, int64_t window);

// How many planes a work-group takes one after the other, of which each is `blocks` of its own: a
// divisor of the channels that leaves enough groups to share.
int64_t planes_of_group(const ConvConfig& c, int64_t blocks);

// x or what is like it, as (a plane's pixels, group, n); results likewise, with their channel of
// the group behind the pixels.
Operand flat_planes(uint32_t slot, const ConvConfig& c);
Operand flat_results(uint32_t slot, const ConvConfig& c);  // of one channel to a group
Operand channel_planes(uint32_t slot, const ConvConfig& c);
// (kx, ky, channel of the group, group)
Operand weights(uint32_t slot, const ConvConfig& c);
Operand windows(uint32_t slot, const ConvConfig& c);  // (kx, ky, group): of one window to a group

// Of the channels (channel of the group, group).
EpilogueOperands terms_of(const ConvConfig& c, const ConvEpilogue& e);
// Calls a kernel whose arguments end with the epilogue's and the result.
void call_with_epilogue(Recorder& recorder, const std::string& kernel, std::vector<HostArg> args,
                        const EpilogueOperands& terms, const Operand& out);

}  // namespace ballast::kernels::depth
