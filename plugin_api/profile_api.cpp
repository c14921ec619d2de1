#include "device/profile.h"

#include "plugin_api/api.h"
#include "plugin_api/guard.h"
#include "plugin_api/objects.h"
#include "plugin_api/structs.h"

namespace ballast::plugin_api {

namespace {

using device::Code;
using device::fail;

ballast_error* counters(ballast_device* device, ballast_counters* out_counters) {
  return guard_call([&] {
    const auto object = Devices::instance().get(device, "device");
    const device::Counters& from = object->counters();
    const device::PoolStats pool = object->pool().stats();
    ballast_counters out{};
    out.host_calls = from.host_calls;
    out.kernel_launches = from.kernel_launches;
    out.submits = from.submits;
    out.copies = from.copies;
    out.bytes_to_device = from.bytes_to_device;
    out.bytes_to_host = from.bytes_to_host;
    out.bytes_on_device = from.bytes_on_device;
    out.allocations = pool.driver_allocations + pool.pool_allocations;
    out.programs_built = from.programs_built;
    out.programs_cached = from.programs_cached;
    write_struct(out_counters, out, "out_counters");
  });
}

ballast_error* profile_drain(ballast_device* device, ballast_profile_sink sink, void* user) {
  return guard_call([&] {
    const auto object = Devices::instance().get(device, "device");
    if (sink == nullptr) fail(Code::kInvalidArgument, "[profile_drain] sink is NULL");
    if (object->profile() == nullptr) {
      fail(Code::kFailedPrecondition, "[profile_drain] the device was opened without profile = 1");
    }
    object->sync();
    for (const device::ProfileRow& row : object->profile()->drain()) {
      ballast_profile_row out{sizeof(ballast_profile_row)};
      out.kernel = to_str(row.kernel);
      out.count = row.count;
      out.total_ns = row.total_ns;
      out.min_ns = row.min_ns;
      sink(user, &out);
    }
  });
}

}  // namespace

const ballast_profile_api kProfileApi = {sizeof(ballast_profile_api), counters, profile_drain};

}  // namespace ballast::plugin_api
