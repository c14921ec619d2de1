// The wall between C++ and C: the only place where exceptions are caught.
#pragma once

#include "ballast/base.h"
#include "device/error.h"

#include <new>
#include <string>

struct ballast_error {
  int32_t code;
  std::string message;
};

namespace ballast::plugin_api {

// Without memory for it: out_of_memory_error.
ballast_error* make_error(int32_t code, const char* message) noexcept;
// An error that takes no memory.
ballast_error* out_of_memory_error() noexcept;
// Throws kFailedPrecondition unless plugin_init was called.
void check_initialised();
// Whether the error was not allocated (and must not be freed).
bool is_static_error(const ballast_error* error);

// Runs `body`, which may throw; returns NULL or the error to hand out.
template <class Body>
ballast_error* guard(Body&& body) noexcept {
  try {
    body();
    return nullptr;
  } catch (const device::Error& error) {
    return make_error(static_cast<int32_t>(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return out_of_memory_error();
  } catch (const std::exception& error) {
    return make_error(BALLAST_INTERNAL, error.what());
  } catch (...) {
    return make_error(BALLAST_INTERNAL, "unknown exception");
  }
}

// The usual call: initialised, outputs cleared.
template <class Out, class Body>
ballast_error* guard_out(Out* out, const char* name, Body&& body) noexcept {
  return guard([&] {
    if (out == nullptr) device::fail(device::Code::kInvalidArgument, "{} is NULL", name);
    *out = Out{};
    check_initialised();
    *out = body();
  });
}
template <class Body>
ballast_error* guard_call(Body&& body) noexcept {
  return guard([&] {
    check_initialised();
    body();
  });
}

}  // namespace ballast::plugin_api
