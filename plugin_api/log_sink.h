// Sends the plugin's log records to the host's callback.
#pragma once

#include "ballast/ballast.h"

namespace ballast::plugin_api {

// Replaces the current callback; a NULL `log` restores standard error.
void set_log_callback(const ballast_host& host);

}  // namespace ballast::plugin_api
