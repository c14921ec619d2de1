#!/usr/bin/env bash
# usage: bench/run.sh [ARGUMENTS OF ballast_bench]
# The kernels beside rivals and limits: a table, every sample as JSON, a picture.
set -euo pipefail
cd "$(dirname "$0")/.."

json=build/bench/kernels.json
build/release/bench/ballast_bench --json "$json" "$@"
.venv/bin/python bench/plot.py "$json" "${json%.json}.svg"
echo "a picture: ${json%.json}.svg"
