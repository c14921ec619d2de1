#!/usr/bin/env bash
# usage: linkage_test.sh LIBBALLAST_SO PROGRAM...
# The plugin exports one symbol; programs above it link neither the plugin, OpenCL nor Halide.
set -euo pipefail
plugin=$1
shift
exported=$(nm -D --defined-only "$plugin" | awk '{print $3}')
if [ "$exported" != ballast_get_api ]; then
  printf '%s exports, instead of ballast_get_api alone:\n%s\n' "$plugin" "$exported"
  exit 1
fi
for program in "$@"; do
  libraries=$(ldd "$program")
  if grep -iE 'OpenCL|Halide|libballast' <<<"$libraries"; then
    echo "$program must not link these"
    exit 1
  fi
done
