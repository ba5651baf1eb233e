#!/bin/bash
# Runs all checks that need a GPU: correctness first, then speed compared with PyTorch. It runs from a source tree, from an
# installed folder, or from a bundle (deploy/bundle.sh) on a machine without syncopate's dependencies. The output of each
# step is on disk when the step ends; table.txt has one line per step.
set -uo pipefail

usage() {
  cat <<'TEXT'
usage: gpu_check.sh [--build DIR | --bundle FILE.tgz] [--out DIR] [--limit SECONDS] [--only GROUPS | --quick]

  --build DIR       of a source tree: take this build instead of building into build/release
  --bundle FILE     unpack this bundle and check what is in it
  --out DIR         a few small files: table.txt, log.txt, device.json, results.jsonl, cuda_plans (a copy of --cache-dir's:
                    which engines of cuDNN were the fastest). Default: build/gpu_check; of a bundle ./gpu_check
  --limit SECONDS   limit for all steps together; a step without time left is not run, and counts as failed
  --only GROUPS     separated by commas: tests accuracy strategies sanitizer torch speed (default: all)
  --quick           --only tests,accuracy

PyTorch runs eagerly and as a CUDA graph. torch.compile has its own steps (torch-*-compile), which take minutes: if one
fails or runs out of time, the table says so, and it does not count as failed. Speed is compared with the fastest way;
resnet50 at other batch sizes with the faster of eager and graph. If PyTorch's side fails, ours is measured alone.

NVIDIA's libraries are looked for in LD_LIBRARY_PATH, in Python's packages (nvidia/cudnn and nvidia/nccl where nvidia/cu13 is
beside them), then in CUDA_PATH or /usr/local/cuda.
Exit code: 0 all passed, 1 something failed, 2 wrong usage, 77 no GPU here (nothing was checked).
TEXT
}

say() { printf '%s\n' "gpu_check: $*"; }
wrong() {
  printf '%s\n' "gpu_check: $*" >&2
  exit 2
}

build="" bundle="" out="" limit="" only=tests,accuracy,strategies,sanitizer,torch,speed
while (($# > 0)); do
  case $1 in
    --build) build=${2:?--build wants a folder}; shift 2 ;;
    --bundle) bundle=${2:?--bundle wants a file}; shift 2 ;;
    --out) out=${2:?--out wants a folder}; shift 2 ;;
    --limit) limit=${2:?--limit wants seconds}; shift 2 ;;
    --only) only=${2:?--only wants groups}; shift 2 ;;
    --quick) only=tests,accuracy; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "$1: no such flag; see --help" ;;
  esac
done
[[ -z $build || -z $bundle ]] || wrong "--build and --bundle: one of the two"
[[ -z $build || -d $build ]] || wrong "--build $build: no such folder"
[[ -z $bundle || -f $bundle ]] || wrong "--bundle $bundle: no such file"
[[ -z $limit || $limit =~ ^[1-9][0-9]*$ ]] || wrong "--limit $limit: expected whole seconds"
for group in ${only//,/ }; do
  [[ " tests accuracy strategies sanitizer torch speed " == *" $group "* ]] || wrong "--only $group: no such group; see --help"
done
wants() { [[ ,$only, == *,$1,* ]]; }

work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT

# A build is installed into a temporary folder, so that all three sources have the layout of an installed folder.
here=$(dirname "$(readlink -f "$0")")
top="" source=""
if [[ -n $bundle ]]; then
  tar xzf "$bundle" -C "$work" || wrong "--bundle $bundle: cannot be unpacked"
  top=$work/syncopate
elif [[ -z $build && -x $here/../../../bin/syncopate ]]; then
  top=$(cd "$here/../../.." && pwd)
else
  source=$(cd "$here/.." && pwd)
  [[ -f $source/CMakePresets.json ]] || wrong "$here: this is neither a source tree nor an installed folder; see --help"
  if [[ -z $build ]]; then
    build=$source/build/release
    say "building into $build"
    (cd "$source" && cmake --preset release -DSYNCOPATE_CUDA=ON >/dev/null && cmake --build --preset release) ||
      { say "the build failed"; exit 1; }
  fi
  top=$work/installed
  for component in Unspecified tests; do
    cmake --install "$build" --prefix "$top" --component "$component" >"$work/install.log" 2>&1 ||
      { cat "$work/install.log" >&2; exit 1; }
  done
fi
program=$top/bin/syncopate tests=$top/libexec/syncopate/tests peers=$top/share/syncopate/bench/peers
[[ -x $program ]] || wrong "$program: there is no program"
out=${out:-${source:+$source/build/}gpu_check}
mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
rm -f "$out"/{table.txt,log.txt,device.json,results.jsonl,cuda_plans}
# The default of the flag --cache-dir of syncopate, which this script does not set.
cache=${SYNCOPATE_CACHE_DIR:-${XDG_CACHE_HOME:+$XDG_CACHE_HOME/syncopate}}
cache=${cache:-${HOME:+$HOME/.cache/syncopate}}
cache=${cache:-${TMPDIR:-/tmp}/syncopate-cache}

# Prints the folders of NVIDIA's libraries, one per line. The caller puts the given LD_LIBRARY_PATH before them, because it
# may name the driver's libraries.
nvidia_folders() {
  local folder part
  python3 - 2>/dev/null <<'TEXT' | while read -r folder; do
import importlib.util
spec = importlib.util.find_spec("nvidia")
print(*(spec.submodule_search_locations if spec else []), sep="\n")
TEXT
    # Without cu13 these are the packages of CUDA 12, whose cudnn and nccl have the same names.
    [[ -d $folder/cu13 ]] || continue
    for part in cudnn nccl cu13 cublas cuda_runtime cuda_nvrtc; do
      if [[ -d $folder/$part/lib ]]; then printf '%s\n' "$folder/$part/lib"; fi
    done
  done
  for folder in "${CUDA_PATH:-/usr/local/cuda}/lib64" "${CUDA_PATH:-/usr/local/cuda}/lib"; do
    if [[ -d $folder ]]; then printf '%s\n' "$folder"; fi
  done
}
# Python runs with the original LD_LIBRARY_PATH, because libraries of the bundle could break it.
if [[ -n ${LD_LIBRARY_PATH+set} ]]; then
  python=(env "LD_LIBRARY_PATH=$LD_LIBRARY_PATH" python3)
else
  python=(env --unset=LD_LIBRARY_PATH python3)
fi
folders=${LD_LIBRARY_PATH:-}
while read -r folder; do folders+=${folders:+:}$folder; done < <(nvidia_folders)
if [[ -d $top/programs ]]; then folders=$top/lib${folders:+:$folders}; fi
export LD_LIBRARY_PATH=$folders

info=$("$program" info 2>&1)
seen=$(sed -n 's/^cuda  *//p' <<<"$info")
seen=${seen:-the program does not say why}
if ! grep -q '^devices .*cuda:0' <<<"$info"; then
  if nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    say "a GPU is here, but the program cannot use it: $seen"
    exit 1
  fi
  say "no GPU here: $seen; nothing was checked"
  exit 77
fi
say "$seen"
{
  printf '%s\n' "== surroundings" "LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
  uname -a
  nvidia-smi
  nvidia-smi -q -d CLOCK,POWER,PERFORMANCE
  "$program" info
} >"$out/log.txt" 2>&1

end=$((limit > 0 ? SECONDS + limit : SECONDS + 86400)) step_end=$end failed=0
# within COMMAND...: runs COMMAND with the rest of the step's time as its limit.
# shellcheck disable=SC2317
within() { timeout --kill-after=5 "$((step_end > SECONDS ? step_end - SECONDS : 1))" "$@"; }

# step NAME SECONDS COMMAND...: writes the command's output to the log and its last line to the table. A step whose tests are
# skipped has not passed. With may_fail=true a failure is in the table but does not count.
may_fail=false
step() {
  local name=$1 seconds=$2 log=$work/$1.log begun=$SECONDS code verdict does_not_count=""
  shift 2
  if ((end - SECONDS < 5)); then
    code=1 verdict="not run"
    echo "no time was left" >"$log"
  else
    step_end=$((SECONDS + seconds < end ? SECONDS + seconds : end))
    "$@" >"$log" 2>&1
    code=$?
    if ((code == 0)) && grep -q '^\[  SKIPPED \]' "$log"; then code=77; fi
    case $code in 0) verdict=passed ;; 124 | 137) verdict="too long" ;; *) verdict="rc $code" ;; esac
  fi
  if ((code != 0)); then
    if $may_fail; then does_not_count="(does not count) "; else failed=$((failed + 1)); fi
  fi
  printf '%-26s %-8s %4d s  %s\n' "$name" "$verdict" $((SECONDS - begun)) \
    "$does_not_count$(tail -n 1 "$log" | cut -c 1-140)" |
    tee -a "$out/table.txt"
  { printf '\n== %s: %s\n' "$name" "$verdict"; tail -c 200000 "$log"; } >>"$out/log.txt"
  # The copy is made after each step, because this script may be stopped.
  if [[ -f $cache/cuda_plans ]]; then cp "$cache/cuda_plans" "$out/"; fi
}

# shellcheck disable=SC2317  # step calls this function
all_libraries() {
  local missing
  missing=$(ldd "$top"/bin/* "$top"/programs/* "$top"/lib/syncopate/* "$tests"/* 2>/dev/null | grep 'not found' | sort -u)
  [[ -z $missing ]] || { printf '%s\n' "$missing"; return 1; }
  echo "all there"
}
# shellcheck disable=SC2317
device_properties() {
  within "$tests/gpu_properties" >"$out/device.json" && cut -c 1-110 "$out/device.json"
}
step libraries 30 all_libraries
step device 30 device_properties

# in_shards COMMAND...: runs a test program in eight processes, each with a part of its tests.
# shellcheck disable=SC2317
in_shards() {
  local shard code=0 parts=()
  for shard in {0..7}; do
    GTEST_TOTAL_SHARDS=8 GTEST_SHARD_INDEX=$shard within "$@" >"$work/shard$shard" 2>&1 &
    parts+=($!)
  done
  for shard in {0..7}; do
    wait "${parts[shard]}" || code=$?
    cat "$work/shard$shard"
  done
  return "$code"
}

if wants tests; then
  filter='-*Emulated*'  # these tests make devices and NCCL fail, which real ones cannot be told to do
  gpus=$(($(sed -n 's/^devices//p' <<<"$info" | wc -w) - 1))  # the list has the CPU, too
  if ((gpus < 2)); then
    say "one GPU here: NCCL between GPUs is left out"
    filter+=':*WithAGpuEach*'
  elif ((gpus < 4)); then
    say "$gpus GPUs here: tests of four are left out"
    filter+=':*FourGpus*'
  fi
  # Most of this test's time passes while the host plans a few hundred small networks, one after the other.
  step gpu_arithmetic_test 300 in_shards "$tests/gpu_arithmetic_test" --gtest_brief=1 --gtest_filter="$filter"
  for test in gpu_sums_test gpu_program_test; do
    step "$test" 200 within "$tests/$test" --gtest_brief=1 --gtest_filter="$filter"
  done
fi

# summary FIELD FILE: prints a field of the summary in a metrics file.
# shellcheck disable=SC2317
summary() { sed -n 's/.*"event":"summary".*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p' "$2"; }
# reaches NAME LEAST ARGUMENT...: succeeds if one epoch of the embedded digits reaches the test accuracy LEAST.
# shellcheck disable=SC2317
reaches() {
  local metrics=$work/$1.jsonl least=$2
  shift 2
  within "$program" "$@" --data digits --epochs 1 --no-progress --metrics "$metrics" &&
    summary test_accuracy "$metrics" |
    awk -v least="$least" '{ print "test accuracy " $1; ok = $1 >= least } END { exit !ok }'
}
# shellcheck disable=SC2317
same_bits_twice() {
  local run
  for run in 1 2; do
    within "$program" train --devices cuda:0 --deterministic --model resnet20 --data synthetic:3x32x32:10:2048 --steps 30 \
      --batch-size 64 --eval-every 0 --no-progress --metrics "$work/$1-$run.jsonl" "${@:2}" || return
  done
  run=$(summary weights_hash "$work/$1-1.jsonl")
  echo "weights $run and $(summary weights_hash "$work/$1-2.jsonl")"
  [[ -n $run && $run == "$(summary weights_hash "$work/$1-2.jsonl")" ]]
}
if wants accuracy; then
  for precision in f32 bf16 fp16; do
    step "digits-$precision" 60 reaches "digits-$precision" 0.97 train --devices cuda:0 --precision "$precision"
    step "twice-$precision" 60 same_bits_twice "twice-$precision" --precision "$precision"
  done
fi

if wants strategies; then
  for replicas in 1 2 4; do
    for strategy in mirrored central-storage; do
      step "$strategy-$replicas" 60 reaches "$strategy-$replicas" 0.95 train --strategy "$strategy" \
        --replicas "$replicas" --share-devices --devices cuda:0 --batch-size 64
    done
    step "multi-worker-mirrored-$replicas" 60 reaches "multi-worker-mirrored-$replicas" 0.95 launch --workers "$replicas" \
      -- train --strategy multi-worker-mirrored --devices cuda:0 --batch-size 64
    step "parameter-server-$replicas" 60 reaches "parameter-server-$replicas" 0.95 launch --workers "$replicas" --servers 1 \
      -- train --strategy parameter-server --consistency sync --devices cuda:0 --batch-size 64
  done
fi

if wants sanitizer; then
  if command -v compute-sanitizer >/dev/null; then
    # Only our kernels are checked, and failed API calls are not reported, because cuDNN and cuBLAS make such calls. The name
    # of the filter flag depends on the version.
    ours=$(compute-sanitizer --help 2>&1 | grep -oE -- '--kernel-(name|regex)' | head -n 1)
    for tool in memcheck racecheck; do
      step "$tool" 300 within compute-sanitizer --tool "$tool" --error-exitcode 3 --report-api-errors no \
        ${ours:+"$ours" kns=syncopate} "$tests/gpu_arithmetic_test" --gtest_brief=1 \
        --gtest_filter='*UpdatesWithTheBitsOfTheCpu/Everything:*In16BitsStaysNearTheInterpreter/Everything'
    done
  else
    say "compute-sanitizer is not installed: memcheck and racecheck are left out"
  fi
fi

# Workloads as model:batch:optimizer:steps per round, the most important first, because a run may be cut short.
# A turn takes about two seconds, over which the driver reports how busy the GPU was.
workloads=(resnet50:256:momentum:50 resnet20:128:momentum:1000 mnist-cnn:64:adam:10000)
has_torch=false
if wants torch || wants speed; then
  if "${python[@]}" -c 'import torch; raise SystemExit(not torch.cuda.is_available())' 2>/dev/null; then
    has_torch=true
  else
    say "no PyTorch with CUDA here: its side is left out"
  fi
fi
# torch_ways NAME WAYS MODEL BATCH OPTIMIZER STEPS: times PyTorch's ways alone. Results from before a time-out are kept.
# shellcheck disable=SC2317
torch_ways() {
  local results=$work/$1.json code
  within "${python[@]}" "$peers/torch_gpu_step.py" --ways "$2" --model "$3" --batch-size "$4" --optimizer "$5" \
    --steps "$6" --rounds 3 --warm-up 10 --precision bf16,fp16 --json "$results"
  code=$?
  if ((code != 0)) && [[ -s $results ]]; then echo "until then: $(sed 's/.*"best"/best/' "$results")"; fi
  return "$code"
}
if wants torch && $has_torch; then
  for ways in eager,graph compile; do
    [[ $ways != compile ]] || may_fail=true
    for workload in "${workloads[@]}"; do
      IFS=: read -r model batch optimizer steps <<<"$workload"
      if $may_fail; then name=torch-$model-compile seconds=400; else name=torch-$model seconds=170; fi
      step "$name" "$seconds" torch_ways "$name" "$ways" "$model" "$batch" "$optimizer" "$steps"
      cat "$work/$name.json" >>"$out/results.jsonl" 2>/dev/null
    done
  done
  may_fail=false
fi

# was_compiled MODEL BATCH: succeeds if torch.compile has results for this batch. Another batch would take minutes to compile.
was_compiled() { [[ -s $work/torch-$1-compile.json && " ${workloads[*]}" == *" $1:$2:"* ]]; }
# bench_step NAME MODEL BATCH OPTIMIZER STEPS PRECISION FLAG...: runs `syncopate-bench step`; its table is in
# $work/NAME.table.
# shellcheck disable=SC2317
bench_step() {
  within "$top/bin/syncopate-bench" step --devices cuda:0 --model "$2" --batch-size "$3" --optimizer "$4" \
    --steps-per-round "$5" --precision "$6" --json "$work/$1.json" "${@:7}" | tee "$work/$1.table" || return
  [[ -s $work/$1.json ]] && grep -q "^$2 " "$work/$1.table"
}
# speed NAME MODEL BATCH OPTIMIZER STEPS PRECISION: times our step and PyTorch's fastest way in turns, and prints the table's line last.
# shellcheck disable=SC2317
speed() {
  local name=$1 model=$2 batch=$3 all_ends=$step_end peer alone=""
  if $has_torch; then
    # Without earlier results that name the fastest way, eager and graph are timed, which start quickly.
    peer="${python[*]} $peers/torch_gpu_step.py --precision bf16,fp16 --ways eager,graph --ways-of $work/torch-$model.json"
    if was_compiled "$model" "$batch"; then peer+=" --ways-of $work/torch-$model-compile.json"; fi
    step_end=$((all_ends - 60))  # keeps a minute to time our step alone
    if bench_step "$@" --peer "$peer"; then
      grep "^$model " "$work/$name.table"
      return
    fi
    step_end=$all_ends alone="  (alone: beside PyTorch it failed)"
  fi
  bench_step "$@" && grep "^$model " "$work/$name.table" | sed "s/\$/$alone/"
}
if wants speed; then
  for workload in "${workloads[@]}" resnet50:128:momentum:100 resnet50:400:momentum:30; do
    IFS=: read -r model batch optimizer steps <<<"$workload"
    for precision in bf16 fp16; do
      name=speed-$model-$batch-$precision
      # The longer limit covers another compilation by PyTorch.
      if was_compiled "$model" "$batch"; then seconds=420; else seconds=230; fi
      step "$name" "$seconds" speed "$name" "$model" "$batch" "$optimizer" "$steps" "$precision"
      tr -d '\n' <"$work/$name.json" 2>/dev/null >>"$out/results.jsonl" && echo >>"$out/results.jsonl"
    done
  done
fi

if ((failed > 0)); then
  say "$failed failed; their output is in $out/log.txt"
else
  say "all passed; their output is in $out/log.txt"
fi
exit $((failed > 0))
