/* What the C programs share: the plugin, opened from its file, and what each call answers. */
#ifndef BALLAST_EXAMPLES_PLUGIN_H
#define BALLAST_EXAMPLES_PLUGIN_H

#include <ballast/ballast.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const ballast_api* api;

static ballast_str text(const char* s) {
  ballast_str str = {s, strlen(s)};
  return str;
}

/* Every call answers NULL, or an error that is ours to destroy. */
static void check(ballast_error* error) {
  if (error == NULL) return;
  ballast_str why = api->error_message(error);
  fprintf(stderr, "error %d: %.*s\n", api->error_code(error), (int)why.size, why.data);
  api->error_destroy(error);
  exit(1);
}

/* Opens the plugin, of this ABI version at least. */
static void load_plugin(const char* path, uint32_t min_version) {
  char why[256] = "no " BALLAST_ENTRY_SYMBOL;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void* symbol = library ? dlsym(library, BALLAST_ENTRY_SYMBOL) : NULL;
  ballast_get_api_fn get_api;
  memcpy(&get_api, &symbol, sizeof(get_api)); /* ISO C has no cast from object to function */
  if (!get_api || get_api(min_version, BALLAST_ABI_CURRENT, &api, why, sizeof(why)) != 0)
    exit(fprintf(stderr, "%s: %s\n", path, library ? why : dlerror()) > 0);
  check(api->plugin_init(NULL));
}

#endif
