#!/bin/bash
# Checks that shellcheck has no remarks on our scripts. Exit code 77: skipped, because shellcheck is not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if ! command -v shellcheck >/dev/null; then
  echo "skipped: there is no shellcheck here"
  exit 77
fi
mapfile -t scripts < <(find deploy tests/deploy tests/slurm .ci -type f \( -name '*.sh' -o -name '*.sbatch' -o -name run \) | sort)
((${#scripts[@]} >= 10)) || { echo "found only: ${scripts[*]}"; exit 1; }
shellcheck --external-sources "${scripts[@]}"
echo "${#scripts[@]} scripts"
