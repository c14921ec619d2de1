// What those share who write a kernel that calls other launches' (merge_launches.h,
// join_launches.h).
#pragma once

#include "device/launch.h"
#include "device/stitch_source.h"

#include <array>
#include <cstdint>
#include <string>

namespace ballast::kernels {

// The text of the functions, without the types by which stitching lets pointers alias: here they
// all come from one kernel, or only one of them runs, or they share memory as one type.
std::string function_text(const device::StitchUnit& unit);

// A name for a kernel of this source: stitching tells functions apart by their names.
std::string body_name(const device::Source& source);

// The three dimensions of a group's number, or of how many there are.
using Ids = std::array<std::string, 3>;

// A call of a stitched kernel (see device::kIdParameters) by a work-item of the group `group`.
std::string call_of(const std::string& body, const Ids& group, const Ids& count,
                    const std::string& arguments);

device::Arg scalar(uint64_t value);

uint64_t groups_of(const device::Launch& launch, size_t dimension);

}  // namespace ballast::kernels
