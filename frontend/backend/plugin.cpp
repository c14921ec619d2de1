#include "frontend/backend/plugin.h"

#include "frontend/ops/print_sink.h"
#include "frontend/tensor/error.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>

namespace ballast {

namespace {

namespace fs = std::filesystem;

std::mutex mutex;
std::string chosen_path;
std::atomic<const ballast_api*> api{nullptr};

const char* version_text(uint32_t version, char (&text)[32]) {
  std::snprintf(text, sizeof(text), "%u.%u", version >> 16, version & 0xffff);
  return text;
}

void log_to_stderr(void*, int32_t level, ballast_str message) {
  if (level > 2 && !std::getenv("BALLAST_VERBOSE")) return;
  std::fprintf(stderr, "ballast: %.*s\n", static_cast<int>(message.size), message.data);
}

}  // namespace

const ballast_api& open_plugin(const std::string& path, uint32_t min_version,
                               uint32_t max_version) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* reason = dlerror();
    fail(BALLAST_NOT_FOUND, "[plugin] cannot load {}: {}", path,
         reason ? reason : "no reason given");
  }
  auto entry = reinterpret_cast<ballast_get_api_fn>(dlsym(library, BALLAST_ENTRY_SYMBOL));
  if (!entry) {
    fail(BALLAST_NOT_FOUND, "[plugin] {} is no Ballast plugin: it has no symbol {}", path,
         BALLAST_ENTRY_SYMBOL);
  }
  const ballast_api* table = nullptr;
  char why[512] = "";
  int32_t code = entry(min_version, max_version, &table, why, sizeof(why));
  if (code != 0) {
    char low[32], high[32];
    fail(code, "[plugin] {} does not speak an ABI version from {} to {}: {}", path,
         version_text(min_version, low), version_text(max_version, high), why);
  }
  return *table;
}

std::string find_plugin() {
  if (const char* path = std::getenv("BALLAST_PLUGIN"); path && *path) return path;
  std::error_code ignored;
  fs::path beside = fs::read_symlink("/proc/self/exe", ignored).parent_path() / "libballast.so";
  if (fs::exists(beside, ignored)) return beside.string();
  return BALLAST_BUILD_PLUGIN;
}

void set_plugin_path(const std::string& path) {
  std::lock_guard lock(mutex);
  if (api) {
    fail(BALLAST_FAILED_PRECONDITION, "[plugin] {} comes too late: a plugin is already loaded",
         path);
  }
  chosen_path = path;
}

const ballast_api& plugin() {
  if (const ballast_api* loaded = api) return *loaded;
  std::lock_guard lock(mutex);
  if (!api) {
    const ballast_api& table = open_plugin(chosen_path.empty() ? find_plugin() : chosen_path);
    ballast_host host = BALLAST_INIT(ballast_host);
    host.log = log_to_stderr;
    host.print = print_to_sink;
    if (ballast_error* error = table.plugin_init(&host)) {
      std::string message = "[plugin] init: ";
      ballast_str text = table.error_message(error);
      message.append(text.data, text.size);
      int32_t code = table.error_code(error);
      table.error_destroy(error);
      throw Error(code, message);
    }
    api = &table;
  }
  return *api;
}

void check(ballast_error* error) {
  if (!error) return;
  const ballast_api& table = plugin();
  ballast_str text = table.error_message(error);
  Error exception(table.error_code(error), std::string(text.data, text.size));
  table.error_destroy(error);
  throw exception;
}

}  // namespace ballast
