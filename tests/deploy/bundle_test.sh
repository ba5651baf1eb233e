#!/bin/bash
# Tests deploy/bundle.sh and the use of a bundle: bundle_test.sh TEST BUILD WORK. The tests share the folder WORK; the first
# one, is_packed, makes the bundle in it. Exit code 77: skipped, with a reason.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
test=$1 build=$2 work=$3

# shellcheck source=tests/deploy/expectations.sh
source "$root/tests/deploy/expectations.sh"
# The test is skipped on a machine with a GPU, whose check would take minutes.
skip_with_a_gpu() {
  if "$build/deploy/syncopate" info | grep -q '^devices .*cuda:0'; then
    echo "skipped: a GPU is here"
    exit 77
  fi
}

is_packed() {
  rm -rf "$work"
  mkdir -p "$work"
  expect_code 0 "$root/deploy/bundle.sh" --build "$build" "$work/bundle.tgz"
  tar xzf "$work/bundle.tgz" -C "$work"
  (($(stat -c %s "$work/bundle.tgz") < 32 << 20)) || fail "$said"
}

leaves_the_tests_out() {
  mkdir -p "$work/small"
  expect_code 0 "$root/deploy/bundle.sh" --build "$build" --no-tests "$work/small/bundle.tgz"
  said=$(tar tzf "$work/small/bundle.tgz")
  expect_output "syncopate/bin/syncopate"
  [[ $said != *gpu_check* && $said != *libexec* ]] || fail "tests are in it: $said"
}

# The files are unpacked as pip does, with their permissions, and the console script is called.
wheel_brings_the_programs() {
  local python unpack='import os, sys, zipfile
for entry in zipfile.ZipFile(sys.argv[1]).infolist():
    os.chmod(zipfile.ZipFile(sys.argv[1]).extract(entry, sys.argv[2]), 0o644 | entry.external_attr >> 16 & 0o111)'
  for python in python3 /usr/bin/python3 ""; do
    if [[ -n $python ]] && "$python" -c 'import numpy' 2>/dev/null; then break; fi
  done
  if [[ -z $python ]]; then
    echo "skipped: no Python here has numpy"
    exit 77
  fi
  rm -rf "$work/wheel"
  mkdir "$work/wheel"
  expect_code 0 "$root/deploy/bundle.sh" --build "$build" --wheel "$work/wheel"
  "$python" -c "$unpack" "$work"/wheel/pysyncopate-*-py3-none-manylinux_2_28_x86_64.whl "$work/wheel"
  expect_code 0 env PYTHONPATH="$work/wheel" SYNCOPATE_HOME= "$python" -c '
import sys, pysyncopate.programs as programs
print(programs.find("syncopate-bench"), flush=True)
sys.argv = ["syncopate", "info"]
programs.main()'
  expect_output "$work/wheel/pysyncopate/bundle/bin/syncopate-bench"
  expect_output "strategies"
}

programs_run_in_an_empty_environment() {
  cd /
  expect_code 0 env -i "$work/syncopate/bin/syncopate" info
  expect_output "strategies"
  expect_code 0 env -i "$work/syncopate/bin/syncopate" train --model mlp --data digits --steps 5 --threads 1 --no-progress
  expect_output "weights hash"
  expect_code 0 env -i "$work/syncopate/bin/syncopate-bench" step --help
}

# A C library that is older, or one without getconf, is replaced by that of the bundle.
programs_run_where_the_c_library_is_older() {
  mkdir -p "$work/older"
  printf '%s\n' '#!/bin/sh' 'echo glibc 2.31' >"$work/older/getconf"
  chmod +x "$work/older/getconf"
  expect_code 0 env PATH="$work/older:$PATH" sh -c "$work/syncopate/bin/syncopate launch --servers 1 --workers 2 -- \
    train --strategy parameter-server --model mlp --data synthetic:1x8x8:4 --steps 20 --no-progress"
  expect_output "weights hash"
  expect_code 0 env PATH="$work/older:$PATH" sh -x "$work/syncopate/bin/syncopate" sbatch --strategy one-device --print
  expect_output "exec $work/syncopate/glibc/ld-linux-x86-64.so.2"
  expect_output "PROGRAM=$work/syncopate/bin/syncopate"
}

# The programs start through a link from another folder, and from a folder with a blank in its name.
programs_run_wherever_they_lie() {
  mkdir -p "$work/a folder"
  mv "$work/syncopate" "$work/a folder/"
  trap 'mv "$work/a folder/syncopate" "$work/"' EXIT
  ln -sfn "$work/a folder/syncopate/bin/syncopate" "$work/link"
  expect_code 0 env -i "$work/link" info
  expect_output "strategies"
}

all_libraries_come_from_the_bundle() {
  local outside
  outside=$(env -i LD_LIBRARY_PATH="$work/syncopate/glibc:$work/syncopate/lib" ldd "$work"/syncopate/programs/* |
    sed -n 's/.* => \(\/[^ ]*\).*/\1/p' | grep -v "^$work/" || true)
  [[ -z $outside ]] || fail "from this machine: $outside"
}

wrong_usage_is_named() {
  expect_code 2 "$root/deploy/bundle.sh"
  expect_code 2 "$root/deploy/bundle.sh" --build "$work/absent" "$work/b.tgz"
  expect_output "$work/absent"
  expect_code 2 "$root/deploy/bundle.sh" --build "$build" "$work/absent/b.tgz"
  expect_code 2 "$root/deploy/gpu_check.sh" --bundle "$work/absent.tgz"
  expect_output "absent.tgz"
  expect_code 2 "$root/deploy/gpu_check.sh" --limit soon
  expect_code 2 "$root/deploy/gpu_check.sh" --only nonsense
}

gpu_check_reports_why_it_checks_nothing() {
  skip_with_a_gpu
  expect_code 77 "$work/syncopate/gpu_check.sh" --out "$work/out"
  expect_output "no GPU here: "
  expect_code 77 "$root/deploy/gpu_check.sh" --bundle "$work/bundle.tgz" --out "$work/out"
  expect_output "nothing was checked"
  local run begun=$SECONDS
  for run in smoke correctness profile record; do
    expect_code 77 "$root/deploy/gpu_run.sh" "$run" --bundle "$work/bundle.tgz" --out "$work/none"
    [[ $said == "gpu_check: no GPU here: "*"; nothing was checked" && $said != *$'\n'* ]] || fail "expected one line: $said"
  done
  expect_code 77 "$work/syncopate/gpu_run.sh" smoke --out "$work/none"
  [[ ! -e $work/none ]] || fail "left behind: $work/none"
  ((SECONDS - begun < 60)) || fail "it took $((SECONDS - begun)) s"
}

# The check has one second on the emulated device. Steps without time left are in the table and have not passed.
gpu_check_keeps_to_its_limit() {
  skip_with_a_gpu
  [[ -f $build/tests/models/backend/cuda/libsyncopate_cuda.so ]] || { echo "skipped: a build without CUDA"; exit 77; }
  local begun=$SECONDS
  mkdir -p "$work/cache"
  echo "what was measured" >"$work/cache/cuda_plans"
  expect_code 1 env LD_LIBRARY_PATH="$build/tests/models/backend/cuda" SYNCOPATE_CACHE_DIR="$work/cache" \
    "$work/syncopate/gpu_check.sh" --limit 1 --out "$work/out"
  ((SECONDS - begun < 60)) || fail "it took $((SECONDS - begun)) s"
  grep -q '^gpu_program_test  *not run' "$work/out/table.txt" || fail "$said"
  [[ -s $work/out/log.txt ]] || fail "there is no log"
  cmp "$work/cache/cuda_plans" "$work/out/cuda_plans" || fail "the engines that were measured do not come back"
}

"$test"
