// The one exported symbol, the table it hands out, and the plugin's own life.
#include "plugin_api/api.h"
#include "plugin_api/guard.h"
#include "plugin_api/handles.h"
#include "plugin_api/log_sink.h"
#include "plugin_api/structs.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace ballast::plugin_api {

std::atomic<int64_t>& live_handles() {
  static std::atomic<int64_t> count{0};
  return count;
}

namespace {

using device::Code;
using device::fail;

std::mutex init_mutex;
std::atomic<int> init_count{0};

constexpr char kName[] = "ballast";
constexpr char kVersion[] = BALLAST_VERSION;
constexpr uint32_t kOldestAbi = BALLAST_ABI_VERSION(BALLAST_ABI_MAJOR, 0);

#if defined(__SANITIZE_ADDRESS__)
constexpr int32_t kSanitizer = 1;
#elif defined(__SANITIZE_THREAD__)
constexpr int32_t kSanitizer = 2;
#else
constexpr int32_t kSanitizer = 0;
#endif

ballast_error* plugin_init(const ballast_host* host) {
  return guard([&] {
    const ballast_host given = read_optional(host, "host");
    const std::lock_guard lock(init_mutex);
    if (init_count == 0) {
      set_log_callback(given);
      set_print_callback(given);
    }
    ++init_count;
  });
}

ballast_error* plugin_shutdown() {
  return guard([&] {
    const std::lock_guard lock(init_mutex);
    if (init_count == 0) fail(Code::kFailedPrecondition, "[plugin_shutdown] without plugin_init");
    const int64_t alive = live_handles();
    if (init_count == 1 && alive > 0) {
      fail(Code::kFailedPrecondition, "[plugin_shutdown] {} handles are alive", alive);
    }
    --init_count;
  });
}

ballast_error* plugin_info(ballast_plugin_info* out_info) {
  return guard([&] {
    ballast_plugin_info info{};
    info.name = {kName, sizeof(kName) - 1};
    info.version = {kVersion, sizeof(kVersion) - 1};
    info.abi_min = kOldestAbi;
    info.abi_max = BALLAST_ABI_CURRENT;
    info.sanitizer = kSanitizer;
    write_struct(out_info, info, "out_info");
  });
}

ballast_error* get_extension(uint64_t id, uint32_t, const void** out_table) {
  return guard([&] {
    if (out_table != nullptr) *out_table = nullptr;
    fail(Code::kUnimplemented, "[get_extension] no extension {:#x}", id);
  });
}

int32_t error_code(const ballast_error* error) { return error == nullptr ? 0 : error->code; }

ballast_str error_message(const ballast_error* error) {
  return error == nullptr ? ballast_str{} : to_str(error->message);
}

void error_destroy(ballast_error* error) {
  if (error != nullptr && !is_static_error(error)) delete error;
}

constexpr ballast_api api_of(uint32_t minor) {
  return {
      sizeof(ballast_api),
      BALLAST_ABI_VERSION(BALLAST_ABI_MAJOR, minor),
      0,
      plugin_init,
      plugin_shutdown,
      plugin_info,
      get_extension,
      error_code,
      error_message,
      error_destroy,
      &kDeviceApi,
      &kOpApi,
      &kGraphApi,
      &kSinkApi,
      &kProfileApi,
  };
}
// By minor version. Tables only grow, so an older version is the newest one under its own number.
const ballast_api kApis[] = {api_of(0), api_of(1), api_of(2)};
static_assert(std::size(kApis) == BALLAST_ABI_MINOR + 1);

}  // namespace

void check_initialised() {
  if (init_count == 0) fail(Code::kFailedPrecondition, "plugin_init has not been called");
}

// Writes a reason that fits into the caller's memory.
int32_t refuse(int32_t code, const std::string& reason, char* why, uint64_t why_size) {
  if (why != nullptr && why_size > 0) {
    const uint64_t length = std::min<uint64_t>(reason.size(), why_size - 1);
    std::memcpy(why, reason.data(), length);
    why[length] = 0;
  }
  return code;
}

}  // namespace ballast::plugin_api

extern "C" __attribute__((visibility("default"))) int32_t ballast_get_api(
    uint32_t min_version, uint32_t max_version, const ballast_api** out_api, char* why,
    uint64_t why_size) {
  using ballast::plugin_api::kApis;
  using ballast::plugin_api::kOldestAbi;
  using ballast::plugin_api::refuse;
  if (out_api == nullptr) return refuse(BALLAST_INVALID_ARGUMENT, "out_api is NULL", why, why_size);
  *out_api = nullptr;
  auto text = [](uint32_t version) {
    return fmt::format("{}.{}", version >> 16, version & 0xffff);
  };
  if (min_version > max_version) {
    return refuse(BALLAST_INVALID_ARGUMENT,
                  "min_version " + text(min_version) + " is above max_version " + text(max_version),
                  why, why_size);
  }
  if (min_version > BALLAST_ABI_CURRENT || max_version < kOldestAbi) {
    return refuse(BALLAST_ABI_MISMATCH,
                  "this plugin speaks ABI " + text(kOldestAbi) + " to " +
                      text(BALLAST_ABI_CURRENT) + ", the caller accepts " + text(min_version) +
                      " to " + text(max_version),
                  why, why_size);
  }
  *out_api = &kApis[std::min<uint32_t>(max_version, BALLAST_ABI_CURRENT) & 0xffff];
  return 0;
}
