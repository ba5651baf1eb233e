#!/bin/bash
# Tests the installed library and `launch` with a program: library_test.sh TEST BUILD WORK SANITIZERS. The tests share the
# folder WORK; the first one, is_built, installs BUILD there and builds the example of deploy/examples against the
# installation. Exit code 77: skipped, with a reason.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
test=$1 build=$2 work=$3 sanitizers=${4:-}
prefix=$work/prefix moons=$work/build/moons
syncopate=$prefix/bin/syncopate

# shellcheck source=tests/deploy/expectations.sh
source "$root/tests/deploy/expectations.sh"
hash_of() { sed -n 's/.*weights hash *//p' <<<"$said"; }
# expect_accuracy PERCENT: fails if the result of a run is below.
expect_accuracy() {
  local found
  found=$(sed -n 's/.*] test accuracy *\([0-9]*\)\..*/\1/p; s/^test accuracy *\([0-9]*\)\..*/\1/p' <<<"$said")
  ((${found:-0} >= $1)) || fail "expected an accuracy of $1 % in: $said"
}
few_steps=(--steps 20 --batch-size 32 --threads 1 --eval-every 0 --no-progress)
many_steps=(--steps 600 --learning-rate 0.01 --threads 1 --eval-every 10 --no-progress)

is_built() {
  rm -rf "$work"
  mkdir -p "$work/source"
  expect_code 0 cmake --install "$build" --prefix "$prefix"
  [[ ! -e $prefix/include && ! -e $prefix/lib/cmake ]] || fail "programs were asked for, and headers were installed"
  expect_code 0 cmake --install "$build" --prefix "$prefix" --component development
  cp "$root"/deploy/examples/own_network/* "$work/source/"
  expect_code 0 cmake -G Ninja -S "$work/source" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_BUILD_TYPE=Release
  expect_code 0 cmake --build "$work/build"
}

trains_alone() {
  expect_code 0 "$moons" --batch-size 32 "${many_steps[@]}"
  expect_output "data moons: 256 training and 64 test samples, f32 [2], 2 classes"
  expect_output "moons-network, 162 parameters"
  expect_accuracy 95
}

# Invariant 1 of the strategies: with one replica, the bits of one-device.
has_the_bits_of_one_device() {
  local expected
  expect_code 0 "$moons" "${few_steps[@]}"
  expected=$(hash_of)
  [[ -n $expected ]] || fail "no hash in: $said"
  for strategy in mirrored central-storage multi-worker-mirrored; do
    expect_code 0 "$moons" --strategy $strategy "${few_steps[@]}"
    [[ $(hash_of) == "$expected" ]] || fail "$strategy: expected the hash $expected: $said"
  done
  expect_code 0 "$syncopate" launch --workers 1 --servers 1 -- "$moons" --strategy parameter-server --consistency sync \
    "${few_steps[@]}"
  [[ $(hash_of) == "$expected" ]] || fail "parameter-server: expected the hash $expected: $said"
}

trains_as_workers() {
  expect_code 0 "$syncopate" launch --workers 2 -- "$moons" --strategy multi-worker-mirrored --batch-size 32 "${many_steps[@]}"
  expect_output "2 tasks have met"
  expect_accuracy 95
  local expected
  expected=$(hash_of)
  expect_code 0 "$moons" --strategy mirrored --replicas 2 --share-devices --batch-size 32 "${many_steps[@]}"
  [[ $(hash_of) == "$expected" ]] || fail "mirrored: expected the hash $expected: $said"
}

trains_beside_servers() {
  cd "$work/build"  # without a slash, the word names a program of the working folder
  expect_code 0 "$syncopate" launch --workers 2 --servers 1 -- moons --strategy parameter-server --batch-size-per-replica 16 \
    "${many_steps[@]}"
  expect_output "[server 0] syncopate: served"
  expect_accuracy 90
}

# The program finds the MPI module in the installation.
finds_its_modules() {
  if [[ ! -e $prefix/lib/syncopate/libsyncopate_mpi.so ]] || ! command -v mpirun >/dev/null; then
    echo "skipped: the build has no MPI module, or there is no mpirun"
    exit 77
  fi
  expect_code 0 "$syncopate" launch --workers 2 -- "$moons" --strategy multi-worker-mirrored --collective mpi "${few_steps[@]}"
  expect_output "2 replicas in 2 tasks"
}

resumes() {
  local expected file
  rm -rf "$work/run"
  expect_code 0 "$moons" "${few_steps[@]}" --steps 40
  expected=$(hash_of)
  expect_code 0 "$moons" "${few_steps[@]}" --checkpoint-dir "$work/run"
  expect_code 0 "$syncopate" launch --workers 1 -- "$moons" "${few_steps[@]}" --steps 40 --checkpoint-dir "$work/run" --resume
  [[ $(hash_of) == "$expected" ]] || fail "expected the hash $expected: $said"
  file=$(find "$work/run" -name '*40.safetensors')
  expect_code 2 "$syncopate" evaluate --checkpoint "$file"
  expect_output "trained by a program on its own data 'moons'"
  expect_code 0 "$syncopate" export --checkpoint "$file" "$work/weights.safetensors"
}

refuses_other_networks_and_data() {
  expect_code 2 "$moons" --model mlp
  expect_output "--model: moons has a network and data of its own"
  expect_code 2 "$syncopate" launch --workers 2 -- "$moons" --data digits
  expect_output "--data: moons has a network and data of its own"
  expect_code 2 "$moons" --batch-size 1000
  expect_output "data moons has only 256 samples"
  expect_code 2 "$moons" --stepz 3
  expect_output "did you mean '--steps'?"
}

if [[ -n $sanitizers ]]; then
  echo "skipped: the build has sanitizers ($sanitizers), which programs of other builds do not link"
  exit 77
fi
"$test"
