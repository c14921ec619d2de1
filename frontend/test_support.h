// What tests of the frontend share. Not part of it.
#pragma once

#include "frontend/modes/compiled.h"
#include "frontend/tensor/error.h"

#include <gtest/gtest.h>

#include <string>

namespace ballast::tests {

inline JitOptions at(JitLevel level) {
  JitOptions options;
  options.level = level;
  return options;
}

// What `body` throws, an Error, says; "no error" if it throws nothing.
template <class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The same, and expects that it throws, with this code.
template <class Body>
std::string message_of(int32_t code, Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error was thrown";
  return {};
}

}  // namespace ballast::tests
