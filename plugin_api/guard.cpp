#include "plugin_api/guard.h"

namespace ballast::plugin_api {

namespace {
// Handed out where not even the error object can be allocated; error_destroy knows it.
ballast_error out_of_memory{BALLAST_OUT_OF_HOST_MEMORY, "out of host memory"};
}  // namespace

ballast_error* make_error(int32_t code, const char* message) noexcept {
  try {
    return new ballast_error{code, message};
  } catch (const std::bad_alloc&) {
    return out_of_memory_error();
  }
}

ballast_error* out_of_memory_error() noexcept { return &out_of_memory; }

bool is_static_error(const ballast_error* error) { return error == &out_of_memory; }

}  // namespace ballast::plugin_api
