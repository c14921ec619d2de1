#!/usr/bin/env bash
# usage: under_oclgrind.sh OCLGRIND LOG PROGRAM ARGUMENT...
# Runs a program on the simulator; fails where the program fails, ran no test, or oclgrind reported
# anything (its own exit status does not say so). Kernels are built without optimization: oclgrind
# 21.10 rejects the `freeze` instructions of its own optimizer. It does not check for uninitialized
# memory: that mode of oclgrind loses track of sub-buffers and reports written memory at random.
set -u
oclgrind=$1 log=$2
shift 2
rm -f "$log"
output=$("$oclgrind" --data-races --build-options -cl-opt-disable --max-errors 50 --log "$log" "$@" 2>&1)
status=$?
printf '%s\n' "$output"
if grep -q 'Running 0 tests' <<<"$output"; then
  echo "under_oclgrind: the filter selects no test" >&2
  exit 1
fi
if [ -s "$log" ]; then
  echo "under_oclgrind: reports:" >&2
  head -n 60 "$log" >&2
  exit 1
fi
exit $status
