#!/bin/bash
# Runs two builds with the same commands and compares the hashes of the trained weights, to check that a change does not
# alter results. No hash is stored, because hashes differ between machines.
# Exit codes: 0 all equal; 1 a hash differs or a run failed; 2 wrong usage.
set -uo pipefail

usage() {
  cat <<'TEXT'
usage: tests/reference_results.sh OLD_BUILD NEW_BUILD [OLD_CHECKPOINT_DIR]

  OLD_BUILD, NEW_BUILD   build folders with deploy/syncopate and bench/syncopate-bench
  OLD_CHECKPOINT_DIR     checkpoints that OLD_BUILD wrote with `train --model mlp`; NEW_BUILD resumes a copy
TEXT
}

if [[ ${1:-} == --help || ${1:-} == -h ]]; then usage && exit 0; fi
if (($# < 2 || $# > 3)); then usage >&2 && exit 2; fi
for build in "$1" "$2"; do
  for program in deploy/syncopate bench/syncopate-bench; do
    [[ -x $build/$program ]] && continue
    echo "reference_results: there is no program $build/$program; build it first" >&2
    exit 2
  done
done
old=$(realpath "$1") new=$(realpath "$2") checkpoints=${3:+$(realpath "$3")}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

readonly kLimit=120  # seconds for one training, at least ten times the usual duration
failures=0 runs=0

hash_in() { grep -ohE 'weights hash +[0-9a-f]{16}' "$1" | grep -oE '[0-9a-f]{16}$' | sort -u | tr '\n' ' '; }

# hash_of BUILD COMMAND...: prints the hash that a training prints, or the reason for its absence.
hash_of() {
  local build=$1 hash
  shift
  if ! timeout "$kLimit" "$build/deploy/syncopate" "$@" >out.txt 2>err.txt </dev/null; then
    echo "failed: $(tail -n 1 err.txt)"
    return
  fi
  hash=$(hash_in out.txt)
  echo "${hash:-no hash}"
}

verdict() {
  local what=$1 before=$2 after=$3
  runs=$((runs + 1))
  if [[ $before == "$after" && $before =~ ^[0-9a-f]{16}\ $ ]]; then
    printf 'equal    %-62s %s\n' "$what" "$before"
  else
    printf 'DIFFERS  %-62s old: %s new: %s\n' "$what" "$before" "$after"
    failures=$((failures + 1))
  fi
}

compare_training() {
  local what=$1
  shift
  verdict "$what" "$(hash_of "$old" "$@")" "$(hash_of "$new" "$@")"
}

# Both builds replay the order that the old build's servers recorded.
compare_replay() {
  local model=$1 data=$2 build
  local -a hashes=()
  hash_of "$old" launch --servers 1 --workers 2 -- train --strategy parameter-server --model "$model" --data "$data" \
    --steps 20 --threads 1 --batch-size-per-replica 8 --record "$scratch/order-$model" >recorded.txt
  for build in "$old" "$new"; do
    timeout "$kLimit" "$build/bench/syncopate-bench" compare --data "$data" --replay "$scratch/order-$model" >out.txt 2>&1
    hashes+=("$(hash_in out.txt)")
  done
  verdict "$model, a recorded asynchronous run replayed" "${hashes[0]}" "${hashes[1]}"
  verdict "$model, the recorded run and its replay" "$(<recorded.txt)" "${hashes[1]}"
}

compare_model() {
  local model=$1 data=$2
  local -a run=(train --model "$model" --data "$data" --steps 20 --threads 1 --no-progress)
  compare_training "$model, one-device" "${run[@]}" --batch-size 16
  compare_training "$model, mirrored, 2 replicas" "${run[@]}" --strategy mirrored --replicas 2 --batch-size 16
  compare_training "$model, mirrored, 3 replicas" "${run[@]}" --strategy mirrored --replicas 3 --batch-size 24 \
    --share-devices
  compare_training "$model, multi-worker-mirrored, 2 workers, ring, shared memory" \
    launch --workers 2 -- "${run[@]}" --strategy multi-worker-mirrored --collective ring --transport shm --batch-size 16
  compare_training "$model, multi-worker-mirrored, 2 workers, ring, TCP" \
    launch --workers 2 -- "${run[@]}" --strategy multi-worker-mirrored --collective ring --transport tcp --batch-size 16
  compare_training "$model, central-storage, 2 replicas" "${run[@]}" --strategy central-storage --replicas 2 \
    --batch-size 16
  compare_training "$model, parameter-server, sync, 1 worker, 1 server" \
    launch --servers 1 --workers 1 -- "${run[@]}" --strategy parameter-server --consistency sync \
    --batch-size-per-replica 16
  compare_replay "$model" "$data"
}

compare_model mlp synthetic:1x28x28:10:1200
compare_model mnist-cnn synthetic:1x28x28:10:1200
compare_model resnet20 synthetic:3x32x32:10:600

if [[ -n $checkpoints ]]; then
  for build in old new; do cp -r "$checkpoints" "$build-checkpoints"; done
  resume=(train --model mlp --resume --threads 1 --no-progress --steps 60)
  verdict "mlp, resumed from a checkpoint of the old build" \
    "$(hash_of "$old" "${resume[@]}" --checkpoint-dir old-checkpoints)" \
    "$(hash_of "$new" "${resume[@]}" --checkpoint-dir new-checkpoints)"
fi

if ((failures > 0)); then
  echo "reference_results: $failures of $runs comparisons differ" >&2
  exit 1
fi
echo "reference_results: all $runs comparisons are equal"
