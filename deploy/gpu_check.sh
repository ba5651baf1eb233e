#!/bin/bash
# Runs all checks that need a GPU: correctness first, then speed compared with PyTorch. It runs from a source tree, from an
# installed folder, or from a bundle (deploy/bundle.sh) on a machine without syncopate's dependencies. The output of each
# step is on disk when the step ends; table.txt has one line per step.
# shellcheck disable=SC2317  # step calls functions by their names
set -uo pipefail

usage() {
  cat <<'TEXT'
usage: gpu_check.sh [--build DIR | --bundle FILE.tgz] [--out DIR] [--plans FILE] [--limit SECONDS] [--group-limit SECONDS]
                    [--only GROUPS | --quick]

  --build DIR       of a source tree: take this build instead of building into build/release
  --bundle FILE     unpack this bundle and check what is in it
  --out DIR         at most 8 small files: table.txt, log.txt, device.json, results.jsonl, profile.txt, ncu.csv, cuda_plans
                    (which engines of cuDNN were the fastest). Default: build/gpu_check; of a bundle ./gpu_check
  --plans FILE      cuda_plans of an earlier run, whose engines are not measured again. Default: the one in --out, if any,
                    else that of the programs' --cache-dir
  --limit SECONDS   limit for all steps together; a step without time left is not run, which does not pass
  --group-limit SECONDS   the same for the steps of each group (default: 580, so that one group takes 10 minutes at most)
  --only GROUPS     separated by commas: tests accuracy strategies sanitizer torch speed profile (default: all these), and
                    smoke: a few tests, resnet50 alone and PyTorch's
  --quick           --only tests,accuracy

PyTorch runs eagerly and as a CUDA graph. torch.compile has its own steps (torch-*-compile), which take minutes: if one
fails or runs out of time, the table says so, and it does not count as failed. Speed is compared with the fastest way that
was timed; without the group torch, and for resnet50 at other batch sizes, that is the faster of eager and graph. If PyTorch's side fails or has no time, ours is measured
alone, and the table says so.

NVIDIA's libraries are looked for in LD_LIBRARY_PATH, in Python's packages (nvidia/cudnn and nvidia/nccl where nvidia/cu13 is
beside them), then in CUDA_PATH or /usr/local/cuda.
Verdicts: passed; slow: correct, but slower than PyTorch's fastest way; failed; too long; not run: no time was left;
skipped: every test of the program was skipped; left out: cannot run here, which does not count.
Exit code: 0 all passed, 1 something failed or was not run, 2 wrong usage, 3 correct but slow, 77 no GPU here (nothing was
checked).
TEXT
}

say() { printf '%s\n' "gpu_check: $*"; }
wrong() {
  printf '%s\n' "gpu_check: $*" >&2
  exit 2
}

build="" bundle="" out="" plans="" limit="" group_limit=580 only=tests,accuracy,strategies,sanitizer,torch,speed,profile
while (($# > 0)); do
  case $1 in
    --build | --bundle | --out | --plans | --limit | --group-limit | --only)
      [[ -n ${2:-} ]] || wrong "$1 wants a value; see --help"
      name=${1#--}
      printf -v "${name//-/_}" %s "$2"
      shift 2
      ;;
    --quick) only=tests,accuracy; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "$1: no such flag; see --help" ;;
  esac
done
[[ -z $build || -z $bundle ]] || wrong "--build and --bundle: one of the two"
[[ -z $build || -d $build ]] || wrong "--build $build: no such folder"
[[ -z $bundle || -f $bundle ]] || wrong "--bundle $bundle: no such file"
[[ -z $plans || -f $plans ]] || wrong "--plans $plans: no such file"
[[ -z $limit || $limit =~ ^[1-9][0-9]*$ ]] || wrong "--limit $limit: expected whole seconds"
[[ $group_limit =~ ^[1-9][0-9]*$ ]] || wrong "--group-limit $group_limit: expected whole seconds"
for group in ${only//,/ }; do
  [[ " tests accuracy strategies sanitizer torch speed profile smoke " == *" $group "* ]] || wrong "--only $group: no such group; see --help"
done

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

info=$(timeout 40 "$program" info 2>&1)
seen=$(sed -n 's/^cuda  *//p' <<<"$info")
seen=${seen:-the program does not say why}
if ! grep -q '^devices .*cuda:0' <<<"$info"; then
  if timeout 20 nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    say "a GPU is here, but the program cannot use it: $seen"
    exit 1
  fi
  say "no GPU here: $seen; nothing was checked"
  exit 77
fi
say "$seen"

mkdir -p "$out" || exit 2
out=$(cd "$out" && pwd)
plans=${plans:-$out/cuda_plans}
if [[ -f $plans ]]; then
  mkdir "$work/cache"
  cp "$plans" "$work/cache/cuda_plans" || exit 2
  export SYNCOPATE_CACHE_DIR=$work/cache
fi
# The default of the flag --cache-dir of syncopate, which this script does not set.
cache=${SYNCOPATE_CACHE_DIR:-${XDG_CACHE_HOME:+$XDG_CACHE_HOME/syncopate}}
cache=${cache:-${HOME:+$HOME/.cache/syncopate}}
cache=${cache:-${TMPDIR:-/tmp}/syncopate-cache}
rm -f "$out"/{table.txt,log.txt,device.json,results.jsonl,profile.txt,ncu.csv}
{
  printf '%s\n' "== surroundings" "LD_LIBRARY_PATH=$LD_LIBRARY_PATH"
  uname -a
  timeout 20 nvidia-smi
  timeout 20 nvidia-smi -q -d CLOCK,POWER,PERFORMANCE
  timeout 40 "$program" info
} >"$out/log.txt" 2>&1

end=$((limit > 0 ? limit : 86400)) group_end=$end step_end=$end
wants() { [[ ,$only, == *,$1,* ]]; }
# begin GROUP: succeeds if GROUP is wanted. Its time begins now.
begin() {
  wants "$1" || return
  group_end=$((SECONDS + group_limit < end ? SECONDS + group_limit : end))
}
# within COMMAND...: runs COMMAND with the rest of the step's time as its limit.
within() { timeout --kill-after=5 "$((step_end > SECONDS ? step_end - SECONDS : 1))" "$@"; }

# add_line NAME VERDICT SECONDS NOTE: adds a line to the table. With may_fail=true only a pass counts.
may_fail=false verdicts=""
add_line() {
  local note=$4
  if $may_fail && [[ $2 != passed ]]; then note="(does not count) $4"; else verdicts+=$2$'\n'; fi
  printf '%-26s %-8s %4d s  %s\n' "$1" "$2" "$3" "${note:0:160}" | tee -a "$out/table.txt"
}

# step NAME SECONDS COMMAND...: writes the command's output to the log and its last line to the table. Where the exit code of
# a function is not enough, the function sets the variable `verdict`.
step() {
  local name=$1 seconds=$2 log=$work/$1.log begun=$SECONDS code=0 verdict="" note=""
  shift 2
  if ((group_end - SECONDS < 5)); then
    verdict="not run"
    echo "no time was left" >"$log"
  else
    step_end=$((SECONDS + seconds < group_end ? SECONDS + seconds : group_end))
    "$@" >"$log" 2>&1 || code=$?
    if [[ -z $verdict ]]; then
      case $code in 0) verdict=passed ;; 124 | 137) verdict="too long" ;; *) verdict=failed note+="rc $code: " ;; esac
    fi
  fi
  add_line "$name" "$verdict" $((SECONDS - begun)) "$note$(tail -n 1 "$log")"
  { printf '\n== %s: %s\n' "$name" "$verdict"; tail -c 200000 "$log"; } >>"$out/log.txt"
  # The copy is made after each step, because this script may be stopped.
  if [[ -f $cache/cuda_plans ]]; then cp "$cache/cuda_plans" "$out/"; fi
}
# keep_results NAME: adds the JSON of a step to results.jsonl, as one line.
keep_results() { [[ -s $work/$1.json ]] && { tr -d '\n' <"$work/$1.json"; echo; } >>"$out/results.jsonl"; }

all_libraries() {
  local missing
  missing=$(ldd "$top"/bin/* "$top"/programs/* "$top"/lib/syncopate/* "$tests"/* 2>/dev/null | grep 'not found' | sort -u)
  [[ -z $missing ]] || { printf '%s\n' "$missing"; return 1; }
  echo "all there"
}
device_properties() {
  within "$tests/gpu_properties" >"$out/device.json" && cut -c 1-110 "$out/device.json"
}
step libraries 30 all_libraries
step device 30 device_properties

# Prints how many tests have the outcome $1 in the output of test programs.
count_tests() { sed -n "s/^\[  $1 *\] \([0-9]*\) test.*/\1/p" "$log" | awk '{ sum += $1 } END { print sum + 0 }'; }
# tested COMMAND...: runs test programs in a step. The filters leave out what cannot run here; the number of other tests that
# are skipped is in the table, with the first reason. Exit code 77 means that a program finds no GPU.
tested() {
  local code=0 passed skipped reason
  "$@" || code=$?
  passed=$(count_tests PASSED) skipped=$(count_tests SKIPPED)
  if ((code == 77 && passed == 0)); then
    reason=$(tail -n 1 "$log")
  elif ((code != 0)); then
    grep -m 1 '^\[  FAILED  \] [^0-9]' "$log"
    return "$code"
  else
    reason=$(sed -n '/: Skipped$/{n;p;q}' "$log")
  fi
  if ((passed == 0)); then verdict=skipped; fi
  echo "$passed tests passed, $skipped skipped${reason:+: $reason}"
}
# in_shards COMMAND...: runs a test program in eight processes, each with a part of its tests.
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

if begin tests; then
  filter='-*Emulated*'  # these tests make devices and NCCL fail, which real ones cannot be told to do
  gpus=$(($(sed -n 's/^devices//p' <<<"$info" | wc -w) - 1))  # the list has the CPU, too
  if ((gpus < 2)); then
    add_line nccl "left out" 0 "NCCL between GPUs: one GPU is here"
    filter+=':*WithAGpuEach*'
  elif ((gpus < 4)); then
    add_line nccl-of-four "left out" 0 "$gpus GPUs are here"
    filter+=':*FourGpus*'
  fi
  # Most of this test's time passes while the host plans a few hundred small networks, one after the other.
  step gpu_test 300 tested in_shards "$tests/gpu_test" --gtest_brief=1 --gtest_filter="$filter"
  step gpu_program_test 200 tested within "$tests/gpu_program_test" --gtest_brief=1 --gtest_filter="$filter"
fi

# summary FIELD FILE: prints a field of the summary in a metrics file.
summary() { sed -n 's/.*"event":"summary".*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p' "$2"; }
# reaches NAME LEAST ARGUMENT...: succeeds if one epoch of the embedded digits reaches the test accuracy LEAST.
reaches() {
  local metrics=$work/$1.jsonl least=$2
  shift 2
  within "$program" "$@" --data digits --epochs 1 --no-progress --metrics "$metrics" &&
    summary test_accuracy "$metrics" |
    awk -v least="$least" '{ print "test accuracy " $1; ok = $1 >= least } END { exit !ok }'
}
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
if begin accuracy; then
  for precision in f32 bf16 fp16; do
    step "digits-$precision" 60 reaches "digits-$precision" 0.97 train --devices cuda:0 --precision "$precision"
    step "twice-$precision" 60 same_bits_twice "twice-$precision" --precision "$precision"
  done
fi

if begin strategies; then
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

if begin sanitizer; then
  updates='*UpdatesWithTheBitsOfTheCpu/Everything' in_16_bits='*In16BitsStaysNearTheInterpreter/Everything'
  # Only our kernels are checked, and failed API calls are not reported, because cuDNN and cuBLAS make such calls. The name
  # of the filter flag depends on the version.
  ours=$(compute-sanitizer --help 2>&1 | grep -oE -- '--kernel-(name|regex)' | head -n 1)
  for tool in memcheck initcheck synccheck racecheck; do
    filter=$updates:$in_16_bits
    # In the test in 16 bits, which runs kernels of cuDNN too, racecheck ends with "Internal Sanitizer Error: The Sanitizer
    # failed to handle a hardware exception" (seen on an H200).
    if [[ $tool == racecheck ]]; then filter=$updates; fi
    if command -v compute-sanitizer >/dev/null; then
      step "$tool" 150 tested within compute-sanitizer --tool "$tool" --error-exitcode 3 --report-api-errors no \
        ${ours:+"$ours" kns=syncopate} "$tests/gpu_test" --gtest_brief=1 --gtest_filter="$filter"
    else
      add_line "$tool" "left out" 0 "compute-sanitizer is not installed"
    fi
  done
fi

# Workloads as model:batch:optimizer:steps per round, the most important first, because a run may be cut short.
# A turn takes about two seconds, over which the driver reports how busy the GPU was.
workloads=(resnet50:256:momentum:50 resnet20:128:momentum:1000 mnist-cnn:64:adam:10000)
has_torch=false
if wants torch || wants speed || wants smoke; then
  if timeout 60 "${python[@]}" -c 'import torch; raise SystemExit(not torch.cuda.is_available())' 2>/dev/null; then
    has_torch=true
  else
    add_line torch "left out" 0 "no PyTorch with CUDA is here"
  fi
fi
# torch_ways NAME WAYS MODEL BATCH OPTIMIZER STEPS: times PyTorch's ways alone. Results from before a time-out are kept.
torch_ways() {
  local code
  within "${python[@]}" "$peers/torch_gpu_step.py" --ways "$2" --model "$3" --batch-size "$4" --optimizer "$5" \
    --steps "$6" --rounds 3 --warm-up 10 --precision bf16,fp16 --json "$work/$1.json"
  code=$?
  if keep_results "$1" && ((code != 0)); then echo "until then: $(sed 's/.*"best"/best/' "$work/$1.json")"; fi
  return "$code"
}
if begin torch && $has_torch; then
  for ways in eager,graph compile; do
    [[ $ways != compile ]] || may_fail=true
    for workload in "${workloads[@]}"; do
      IFS=: read -r model batch optimizer steps <<<"$workload"
      if $may_fail; then name=torch-$model-compile seconds=400; else name=torch-$model seconds=170; fi
      step "$name" "$seconds" torch_ways "$name" "$ways" "$model" "$batch" "$optimizer" "$steps"
    done
  done
  may_fail=false
fi

# was_compiled MODEL BATCH: succeeds if torch.compile has results for this batch. Another batch would take minutes to compile.
was_compiled() { [[ -s $work/torch-$1-compile.json && " ${workloads[*]}" == *" $1:$2:"* ]]; }
# bench_step NAME MODEL BATCH OPTIMIZER STEPS PRECISION FLAG...: runs `syncopate-bench step`, and prints the line with the
# result last. Its table is in $work/NAME.table.
bench_step() {
  within "$top/bin/syncopate-bench" step --devices cuda:0 --model "$2" --batch-size "$3" --optimizer "$4" \
    --steps-per-round "$5" --precision "$6" --json "$work/$1.json" "${@:7}" | tee "$work/$1.table" || return
  keep_results "$1" && grep "^$2 " "$work/$1.table"
}
# speed NAME MODEL BATCH OPTIMIZER STEPS PRECISION: times our step and PyTorch's fastest way in turns.
speed() {
  local name=$1 model=$2 batch=$3 all_ends=$step_end ways=$work/torch-$2.json peer ratio
  if $has_torch; then
    # Without earlier results that name the fastest way, eager and graph are timed, which start quickly.
    peer="${python[*]} $peers/torch_gpu_step.py --precision bf16,fp16 --ways eager,graph --ways-of $ways"
    if was_compiled "$model" "$batch"; then
      peer+=" --ways-of $work/torch-$model-compile.json"
    elif [[ ! -s $ways ]]; then
      peer+=" --json $ways.new"
    fi
    step_end=$((all_ends - 60))  # keeps a minute to time our step alone
    if bench_step "$@" --peer "$peer"; then
      if [[ -s $ways.new ]]; then mv "$ways.new" "$ways"; fi  # a failed step may not have timed all ways
      ratio=$(tr -d '\n ' <"$work/$name.json" | sed -n 's/.*"ratio":{[^}]*"median":\([0-9.e+-]*\).*/\1/p')
      [[ -n $ratio ]] || { echo "$work/$name.json has no ratio"; return 1; }
      if awk -v ratio="$ratio" 'BEGIN { exit !(ratio < 1) }'; then verdict=slow; fi
      return 0
    fi
    step_end=$all_ends note="alone; beside PyTorch it failed or had no time: "
  fi
  bench_step "$@"
}
if begin speed; then
  for workload in "${workloads[@]}" resnet50:128:momentum:100 resnet50:400:momentum:30; do
    IFS=: read -r model batch optimizer steps <<<"$workload"
    for precision in bf16 fp16; do
      name=speed-$model-$batch-$precision
      # The longer limit covers another compilation by PyTorch.
      if was_compiled "$model" "$batch"; then seconds=420; else seconds=230; fi
      step "$name" "$seconds" speed "$name" "$model" "$batch" "$optimizer" "$steps" "$precision"
    done
  done
fi

# profile NAME MODEL BATCH OPTIMIZER STEPS PRECISION: lists the time of our step by groups of operations.
profile() {
  bench_step "$@" --rounds 3 --profile && grep -q '^groups ' "$work/$1.table" &&
    { echo "== $1"; cat "$work/$1.table"; } >>"$out/profile.txt"
}
# Writes time, bytes and registers of each launch of our kernels in the first step, which is not captured, to ncu.csv.
kernels() {
  within ncu --clock-control none --metrics gpu__time_duration.sum,dram__bytes.sum,launch__registers_per_thread --csv \
    --page raw --target-processes all --kernel-name-base demangled --kernel-name regex:syncopate --launch-count 600 \
    --kill yes "$top/bin/syncopate-bench" step --devices cuda:0 --precision bf16 --model resnet50 --batch-size 64 \
    --rounds 1 --steps-per-round 2
  grep '^"' "$log" >"$out/ncu.csv" && echo "$(wc -l <"$out/ncu.csv") lines in ncu.csv"
}
if begin profile; then
  for workload in resnet50:bf16 resnet50:fp16 mobilenet-v2:bf16; do
    name=profile-${workload/:/-}
    step "$name" 150 profile "$name" "${workload%:*}" 256 momentum 20 "${workload#*:}"
  done
  if command -v ncu >/dev/null; then
    may_fail=true  # many machines do not let users read a GPU's counters
    step ncu 150 kernels
    may_fail=false
  else
    add_line ncu "left out" 0 "ncu is not installed"
  fi
fi

if begin smoke; then
  step smoke-tests 100 tested in_shards "$tests/gpu_test" --gtest_brief=1 \
    --gtest_filter='*/Everything:*/Bottleneck:*/ResidualBlock16*:*/ConvRelu*:-*Emulated*'
  step smoke-digits 60 reaches smoke-digits 0.97 train --devices cuda:0 --precision bf16
  for precision in bf16 fp16; do
    step "smoke-resnet50-$precision" 90 bench_step "smoke-resnet50-$precision" resnet50 256 momentum 40 "$precision"
  done
  if $has_torch; then step smoke-torch 100 torch_ways smoke-torch graph resnet50 256 momentum 20; fi
fi

total=""
for verdict in passed slow skipped failed "too long" "not run" "left out"; do
  number=$(grep -cx "$verdict" <<<"$verdicts")
  if ((number > 0)); then total+="${total:+, }$number $verdict"; fi
done
say "$total; the output is in $out/log.txt"
if grep -qxE 'skipped|failed|too long|not run' <<<"$verdicts"; then exit 1; fi
if grep -qx slow <<<"$verdicts"; then exit 3; fi
