#!/bin/bash
# Everything that waits for a GPU, in one go: correctness first, then speed beside PyTorch. One table at the end;
# what each step said is kept. Run it wherever an NVIDIA GPU is.
set -uo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/gpu_check.sh [--build DIR] [--out DIR] [--quick]

  --build DIR   take this build instead of building into build/release
  --out DIR     keep what each step says there (default: build/gpu_check)
  --quick       tests only, no benchmarks

Exit code: 0 all passed, 1 something failed, 2 wrong usage, 77 no GPU here (nothing was checked).
TEXT
}

say() { printf '%s\n' "gpu_check: $*"; }
wrong() {
  printf '%s\n' "gpu_check: $*" >&2
  exit 2
}

build="" out="" quick=false
while (($# > 0)); do
  case $1 in
    --build) build=${2:?--build wants a folder}; shift 2 ;;
    --out) out=${2:?--out wants a folder}; shift 2 ;;
    --quick) quick=true; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "$1: no such flag; see --help" ;;
  esac
done
root=$(cd "$(dirname "$0")/.." && pwd) || exit 2
[[ -z $build || -d $build ]] || wrong "--build $build: no such folder"
if [[ -z $build ]]; then
  build=$root/build/release
  say "building into $build"
  (cd "$root" && cmake --preset release -DSYNCOPATE_CUDA=ON >/dev/null && cmake --build --preset release) ||
    { say "the build failed"; exit 1; }
fi
out=${out:-$root/build/gpu_check}
mkdir -p "$out" || exit 2
program=$build/deploy/syncopate
[[ -x $program ]] || wrong "$program: there is no program; build first, or name another --build"

seen=$("$program" info 2>&1 | sed -n 's/^cuda  *//p')
if ! "$program" info | grep -q '^devices .*cuda:0'; then
  say "no GPU here: ${seen:-the program does not say why}; nothing was checked"
  exit 77
fi
say "$seen"
nvidia-smi >"$out/nvidia-smi.log" 2>&1

# shellcheck disable=SC2317
within() { timeout --kill-after=5 "$@"; }

table=() failed=0
# step NAME COMMAND...: its output goes to a file, its last line into the table. What skips its tests has not passed.
step() {
  local name=$1 log=$out/$1.log begun=$SECONDS code
  shift
  "$@" >"$log" 2>&1
  code=$?
  if ((code == 0)) && grep -q '^\[  SKIPPED \]' "$log"; then code=77; fi
  ((code == 0)) || failed=$((failed + 1))
  table+=("$(printf '%-28s %-7s %4d s  %s' "$name" "$( ((code == 0)) && echo passed || echo "rc $code")" \
    $((SECONDS - begun)) "$(tail -n 1 "$log" | cut -c 1-100)")")
  printf '%s\n' "${table[-1]}"
}

step arithmetic within 300 "$build/tests/models/backend/cuda/gpu_arithmetic_test" --gtest_brief=1
step strategies within 300 "$build/tests/end_to_end/gpu_program_test" --gtest_brief=1
# shellcheck disable=SC2317  # these are called through step
# What a network reaches on the CPU after an epoch of the embedded digits.
reaches() {
  local metrics=$out/$1.jsonl least=$2
  shift 2
  within 120 "$program" train --data digits --epochs 1 --no-progress --metrics "$metrics" "$@" &&
    sed -n 's/.*"event":"summary".*"test_accuracy":\([0-9.]*\).*/\1/p' "$metrics" |
    awk -v least="$least" '{ print "test accuracy " $1; ok = $1 >= least } END { exit !ok }'
}
step digits-f32 reaches digits-f32 0.97 --devices cuda:0
step digits-bf16 reaches digits-bf16 0.97 --devices cuda:0 --precision bf16
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    step "$tool" within 280 compute-sanitizer --tool "$tool" --error-exitcode 3 \
      "$build/tests/models/backend/cuda/gpu_arithmetic_test" --gtest_brief=1 --gtest_filter='*Everything*:*ResidualBlock16*'
  done
else
  say "compute-sanitizer is not installed: memcheck and racecheck are left out"
fi

# shellcheck disable=SC2317
# Samples per second of a network on noise, the last line of its result.
speed() {
  local metrics=$out/$1.jsonl
  shift
  within 200 "$program" train --devices cuda:0 --no-progress --eval-every 0 --optimizer momentum --metrics "$metrics" "$@" &&
    sed -n 's/.*"event":"summary".*"samples_per_second":\([0-9.]*\).*/\1 samples\/s/p' "$metrics"
}
if ! $quick; then
  for precision in f32 bf16; do
    step "mnist-cnn-$precision" speed "mnist-cnn-$precision" --model mnist-cnn --precision "$precision" \
      --data synthetic:1x28x28:10:16384 --batch-size 64 --steps 3000
    step "resnet20-$precision" speed "resnet20-$precision" --model resnet20 --precision "$precision" \
      --data synthetic:3x32x32:10:8192 --batch-size 128 --steps 600
  done
  step resnet50-bf16 speed resnet50-bf16 --model resnet50 --precision bf16 \
    --data synthetic:3x224x224:1000:2048 --batch-size 256 --steps 60
  if python3 -c 'import torch; raise SystemExit(not torch.cuda.is_available())' 2>/dev/null; then
    for network in mnist-cnn:64:100 resnet20:128:100 resnet50:256:20; do
      IFS=: read -r model batch steps <<<"$network"
      step "torch-$model" within 280 python3 "$root/bench/peers/torch_gpu_step.py" --model "$model" \
        --batch-size "$batch" --steps "$steps"
    done
  else
    say "no PyTorch with CUDA here: its side is left out"
  fi
fi

printf '\n%s\n' "${table[@]}" | tee "$out/table.txt"
((failed == 0)) || say "$failed failed; what they said is in $out"
exit $((failed > 0))
