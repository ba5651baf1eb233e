#!/bin/bash
# Prints the number of compilers to run at once: one per core, but at most one per 1.5 GB of free memory.
set -euo pipefail
cores=$(nproc)
free_kib=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
jobs=$((${free_kib:-1572864} / 1572864))
((jobs > cores)) && jobs=$cores
((jobs < 1)) && jobs=1
echo "$jobs"
