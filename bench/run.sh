#!/usr/bin/env bash
# usage: bench/run.sh [ARGUMENTS OF compare.py]
# The kernels' microbenchmarks, then the workloads beside other frameworks where peers.py is found.
set -euo pipefail
cd "$(dirname "$0")/.."

while read -r program; do
  echo "== ${program##*/}"
  "$program" --benchmark_min_time=0.2
done < <(find build/release -name '*_bench' -type f -perm -u+x | sort)

if [ -f "${BALLAST_PEERS:-../shared/peers}/peers.py" ]; then
  .venv/bin/python bench/compare.py "$@"
else
  echo "no peers.py (\$BALLAST_PEERS names its folder): the comparison is left out"
fi
