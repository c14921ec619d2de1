// Where what the op print writes goes.
#pragma once

#include <ballast/base.h>

#include <functional>
#include <string>

namespace ballast {

// The sink of all prints from now on; an empty function stands for standard output. Any thread may
// print, but texts arrive one at a time. What the sink throws is reported on standard error and
// goes no further.
void set_print_sink(std::function<void(const std::string& text)> sink);

// What the plugin is given to print with.
void print_to_sink(void* user, ballast_str text) noexcept;

}  // namespace ballast
