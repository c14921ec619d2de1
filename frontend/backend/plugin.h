// The plugin as a shared library: found, opened, its ABI version agreed on. Loaded at most once per
// process and never closed (OpenCL runtimes keep threads). Thread-safe.
#pragma once

#include <ballast/ballast.h>

#include <string>

namespace ballast {

// Opens a plugin file and negotiates the ABI range [min_version, max_version]. Throws Error naming
// the file and the reason: missing file, missing symbol, wrong version.
const ballast_api& open_plugin(const std::string& path,
                               uint32_t min_version = BALLAST_ABI_VERSION(1, 2),
                               uint32_t max_version = BALLAST_ABI_CURRENT);

// Where the plugin is looked for: $BALLAST_PLUGIN, then libballast.so beside the executable, then
// the build's own. Returns the first that exists, or the environment's word as it stands.
std::string find_plugin();

// Names the plugin to use; only before the first use of plugin().
void set_plugin_path(const std::string& path);

// The process's plugin, opened and initialised on first use.
const ballast_api& plugin();

// Turns an ABI error into an Error and frees it; nothing for NULL.
void check(ballast_error* error);

}  // namespace ballast
