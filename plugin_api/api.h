// The tables of each part, made in <part>_api.cpp and joined in api_table.cpp.
#pragma once

#include "ballast/ballast.h"

namespace ballast::plugin_api {

extern const ballast_device_api kDeviceApi;
extern const ballast_op_api kOpApi;
extern const ballast_graph_api kGraphApi;
extern const ballast_sink_api kSinkApi;
extern const ballast_profile_api kProfileApi;

}  // namespace ballast::plugin_api
