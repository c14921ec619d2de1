// Sends what the plugin logs, and what the op print writes, to the host's callbacks.
#pragma once

#include "ballast/ballast.h"

namespace ballast::plugin_api {

// Replaces the current callback; a NULL `log` restores standard error.
void set_log_callback(const ballast_host& host);
// The same for `print`; NULL restores standard output.
void set_print_callback(const ballast_host& host);

}  // namespace ballast::plugin_api
