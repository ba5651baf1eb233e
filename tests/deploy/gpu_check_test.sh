#!/bin/bash
# Tests the verdicts and exit codes of deploy/gpu_check.sh and deploy/gpu_run.sh without a GPU, in an installed folder whose
# programs are scripts. The argument names the test; CMakeLists.txt lists the tests.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tests/slurm/checks.sh
source "$root/tests/slurm/checks.sh"
scripts=$scratch/installed/share/syncopate/deploy out=$scratch/out table=$scratch/out/table.txt

# write_program PATH: makes a shell script of the standard input. It appends its name and arguments to the file `calls`.
write_program() {
  mkdir -p "$(dirname "$scratch/$1")"
  { printf '%s\n' '#!/bin/bash' "echo \"\${0##*/} \$*\" >>'$scratch/calls'"; cat; } >"$scratch/$1"
  chmod +x "$scratch/$1"
}

# GPUS has the devices that are found, FAILS the programs that fail.
write_program installed/bin/syncopate <<'TEXT'
if [[ $1 == info ]]; then
  printf '%s\n' "cuda         a device of a test" "devices      cpu ${GPUS-cuda:0}"
  exit
fi
while [[ $1 != --metrics ]]; do shift; done
echo '{"event":"summary","test_accuracy":0.98,"weights_hash":"0123"}' >"$2"
TEXT
# RATIO is that of PyTorch's time to ours.
write_program installed/bin/syncopate-bench <<'TEXT'
while (($# > 0)); do
  case $1 in --model) model=$2 ;; --json) json=$2 ;; --peer) peer=$2 ;; --profile) profile=true ;; esac
  shift
done
ratio=""
if [[ -n ${peer:-} ]]; then
  ratio=${RATIO:-1.15}
  if [[ $peer == *" --json "* ]]; then echo '{"best": {}}' >"${peer#* --json }"; fi
  [[ ${FAILS:-} != torch ]] || exit 1
fi
printf '%s\n' '[' ' {' '  "model": "it",' ${ratio:+'  "ratio": {' '   "max": 9.0,' '   "median": '"$ratio"',' '   "min": 0.1' '  },'} \
  '  "z": 1' ' }' ']' >"$json"
printf '%s\n' "model  batch  ours ms [min-max]" "$model  256  31.0 [30.9-31.1]${ratio:+  36.0 [35.9-36.1]  $ratio [0.100-9.00] x}"
if [[ -n ${profile:-} ]]; then printf '%s\n' "groups  pass  number  ms" "batch norm  backward  53  10.1"; fi
echo "conditions: quiet"
TEXT
write_program installed/libexec/syncopate/tests/gpu_properties <<<"echo '{\"name\": \"a device of a test\"}'"
# The variable with the name of a test program says what happens to its tests.
for name in gpu_test gpu_program_test; do
  write_program "installed/libexec/syncopate/tests/$name" <<'TEXT'
name=${0##*/}
skip() { printf '%s\n' "sums_test.cc:179: Skipped" "two GPUs are wanted; here: 1"; }
case ${!name:-} in
  fails) printf '%s\n' "[  FAILED  ] Sums.AreRight (1 ms)" "[  PASSED  ] 3 tests." "[  FAILED  ] 1 test, listed below:" \
    "[  FAILED  ] Sums.AreRight" "" " 1 FAILED TEST"; exit 1 ;;
  skips_one) skip; printf '%s\n' "[  PASSED  ] 3 tests." "[  SKIPPED ] 1 test." ;;
  skips_all) skip; skip; printf '%s\n' "[  PASSED  ] 0 tests." "[  SKIPPED ] 2 tests." ;;
  sees_no_gpu) echo "no GPU here: driver too old"; exit 77 ;;
  hangs) sleep 60 ;;
  takes_two_seconds) sleep 2; echo "[  PASSED  ] 3 tests." ;;
  *) echo "[  PASSED  ] 3 tests." ;;
esac
TEXT
done
write_program path/compute-sanitizer <<'TEXT'
if [[ $1 == --help ]]; then echo "  --kernel-regex TEXT" && exit; fi
[[ ${FAILS:-} != "$2" ]] || exit 3
while [[ $1 != */gpu_test ]]; do shift; done
exec "$@"
TEXT
write_program path/ncu <<'TEXT'
[[ ${FAILS:-} != ncu ]] || { echo "==ERROR== ERR_NVGPUCTRPERM"; exit 1; }
printf '%s\n' "==PROF== Connected" '"ID","Kernel Name"' '"0","normalise"'
TEXT
write_program path/python3 <<'TEXT'
if [[ $1 == -c ]]; then exit "${NO_TORCH:-0}"; fi
if [[ $1 == - ]]; then exit; fi
while [[ $1 != --json ]]; do shift; done
echo '{"best": {"samples_per_second": 6272}}' >"$2"
echo "PyTorch, fp16, graph: 6272 samples/s"
TEXT
write_program path/nvidia-smi <<<"exit 1"
mkdir -p "$scripts"
cp "$root"/deploy/gpu_{check,run}.sh "$scripts/"
export PATH=$scratch/path:$PATH SYNCOPATE_CACHE_DIR=$scratch/cache TMPDIR=$scratch/tmp
mkdir "$TMPDIR"

# expect_verdict NAME PATTERN: the line of a step in the table matches PATTERN after the name.
expect_verdict() { grep -qE -- "^$1 +$2" "$table" || fail "expected '$1 $2' in: $(cat "$table")"; }
# check CODE ARGUMENT...: runs gpu_check.sh. Whatever the verdict, it removes its temporary files, and leaves few files in --out.
check() {
  expect_exit "$1" timeout 50 "$scripts/gpu_check.sh" --out "$out" "${@:2}"
  expect_equal "$(ls "$TMPDIR")" ""
  (($(find "$out" -type f | wc -l) <= 8)) || fail "more than 8 files: $(ls "$out")"
}

passes_where_all_steps_pass() {
  check 0
  expect_verdict gpu_test 'passed +[0-9]+ s  24 tests passed, 0 skipped'  # three in each of eight shards
  expect_verdict twice-bf16 passed
  expect_verdict parameter-server-4 passed
  expect_verdict torch-resnet50 'passed .*6272 samples/s'
  expect_verdict speed-resnet50-256-fp16 'passed .*resnet50  256  31.0'
  expect_equal "$(grep -vcE '^[^ ]+ +(passed|left out) ' "$table")" 0
  grep -q 'smoke' "$table" && fail "smoke is not one of the default groups"
  grep -q '== speed-resnet50-256-fp16: passed' "$out/log.txt" || fail "a step is not in the log"
}

names_the_first_test_that_fails() {
  gpu_program_test=fails check 1 --only tests
  expect_verdict gpu_program_test 'failed .*rc 1: .*Sums.AreRight'
  expect_verdict gpu_test passed
}

tells_skipped_tests_from_failed_ones() {
  gpu_program_test=skips_one check 0 --only tests
  expect_verdict gpu_program_test 'passed .*3 tests passed, 1 skipped: two GPUs are wanted; here: 1'
  expect_verdict nccl 'left out .*one GPU is here'
  grep -q 'gpu_program_test .*-\*Emulated\*:\*WithAGpuEach\*' "$scratch/calls" || fail "not filtered: $(cat "$scratch/calls")"
}

does_not_pass_a_program_whose_tests_are_all_skipped() {
  gpu_program_test=skips_all gpu_test=sees_no_gpu check 1 --only tests
  expect_verdict gpu_program_test 'skipped .*0 tests passed, 2 skipped: two GPUs are wanted'
  expect_verdict gpu_test 'skipped .*no GPU here: driver too old'
}

tells_slow_from_wrong() {
  RATIO=0.98 check 3 --only speed
  expect_verdict speed-resnet20-128-bf16 'slow .*0.98'
  RATIO=1.0 check 0 --only speed
  RATIO=0.98 gpu_program_test=fails check 1 --only tests,speed
  expect_verdict speed-resnet20-128-bf16 slow
}

times_ours_alone_without_pytorch() {
  NO_TORCH=1 RATIO=0.98 check 0 --only torch,speed
  expect_verdict torch 'left out .*no PyTorch'
  expect_verdict speed-mnist-cnn-64-fp16 passed
  FAILS=torch check 0 --only speed
  expect_verdict speed-mnist-cnn-64-fp16 'passed .*alone; beside PyTorch it failed or had no time: mnist-cnn'
}

# syncopate-bench starts PyTorch. The number of calls that let it time several ways:
times_the_ways_of_pytorch_once_for_each_network() {
  timed() { grep -c -- '--peer .* --json ' "$scratch/calls" || true; }
  check 0 --only speed
  expect_equal "$(timed)" 3
  FAILS=torch check 0 --only speed
  expect_equal "$(timed)" 13  # results of a step that failed are not used
  rm "$scratch/calls"
  check 0 --only torch,speed
  expect_equal "$(timed)" 0
  expect_equal "$(grep -c -- '--peer .*--ways-of .*torch-resnet50-compile.json' "$scratch/calls")" 2  # one batch size
}

does_not_run_a_step_without_time() {
  check 1 --only tests --limit 1
  expect_verdict libraries 'not run .*no time was left'
  expect_verdict gpu_program_test 'not run'
}

ends_a_step_that_takes_too_long() {
  gpu_program_test=hangs check 1 --only tests --group-limit 10
  expect_verdict gpu_test passed
  expect_verdict gpu_program_test 'too long'
}

gives_each_group_its_own_time() {
  gpu_test=takes_two_seconds check 1 --only tests,accuracy --group-limit 6
  expect_verdict gpu_test passed
  expect_verdict gpu_program_test 'not run'
  expect_verdict digits-f32 passed
}

runs_racecheck_without_the_test_that_it_cannot_run() {
  check 0 --only sanitizer
  for tool in memcheck initcheck synccheck racecheck; do expect_verdict "$tool" 'passed .*3 tests passed'; done
  expect_equal "$(grep -cE -- '--tool (mem|init|sync)check .*kns=syncopate .*16Bits' "$scratch/calls")" 3
  grep -q -- '--tool racecheck .*16Bits' "$scratch/calls" && fail "racecheck runs the test in 16 bits"
  FAILS=memcheck check 1 --only sanitizer
  expect_verdict memcheck 'failed .*rc 3'
  gpu_test=skips_all check 1 --only sanitizer
  expect_verdict memcheck skipped
}

keeps_the_profile_of_each_network() {
  check 0 --only profile
  expect_equal "$(grep '^==' "$out/profile.txt" | tr '\n' ' ')" \
    "== profile-resnet50-bf16 == profile-resnet50-fp16 == profile-mobilenet-v2-bf16 "
  grep -q '^batch norm  backward' "$out/profile.txt" || fail "no groups"
  grep -q '^batch norm  backward' "$out/log.txt" || fail "no groups in the log"
  expect_equal "$(wc -l <"$out/ncu.csv")" 2
  FAILS=ncu check 0 --only profile
  expect_verdict ncu 'failed .*does not count.*NVGPUCTRPERM'
}

takes_the_engines_of_an_earlier_run() {
  mkdir -p "$scratch/cache"
  echo "of the cache" >"$scratch/cache/cuda_plans"
  check 0 --only accuracy
  expect_equal "$(cat "$out/cuda_plans")" "of the cache"
  echo "measured since" >"$scratch/cache/cuda_plans"
  check 0 --only accuracy
  expect_equal "$(cat "$out/cuda_plans")" "of the cache"
  echo "of another run" >"$scratch/plans"
  check 0 --only accuracy --plans "$scratch/plans"
  expect_equal "$(cat "$out/cuda_plans")" "of another run"
  expect_equal "$(cat "$scratch/cache/cuda_plans")" "measured since"
}

has_four_runs() {
  local run
  for run in smoke correctness profile record; do
    expect_exit 0 timeout 50 "$scripts/gpu_run.sh" "$run" --out "$out"
    cp "$table" "$scratch/$run"
  done
  table=$scratch/smoke
  expect_verdict smoke-tests 'passed .*24 tests passed'
  expect_verdict smoke-resnet50-fp16 'passed .*resnet50  256  31.0'
  expect_verdict smoke-torch 'passed .*6272 samples/s'
  table=$scratch/correctness
  expect_verdict mirrored-4 passed
  expect_verdict racecheck passed
  table=$scratch/profile
  expect_verdict profile-resnet50-fp16 passed
  table=$scratch/record
  expect_verdict speed-mnist-cnn-64-bf16 'passed .*1.15'
}

leaves_nothing_behind_without_a_gpu() {
  local run said
  for run in smoke correctness profile record; do
    said=$(GPUS='' timeout 50 "$scripts/gpu_run.sh" "$run" --out "$out" 2>&1) && fail "$run passes without a GPU: $said"
    GPUS='' expect_exit 77 timeout 50 "$scripts/gpu_run.sh" "$run" --out "$out"
    expect_equal "$said" "gpu_check: no GPU here: a device of a test; nothing was checked"
    expect_equal "$(ls "$TMPDIR")" ""
    [[ ! -e $out ]] || fail "$run leaves files behind: $(ls "$out")"
  done
}

names_wrong_usage() {
  local flags
  for flags in --nonsense --only "--only nonsense" "--limit soon" "--group-limit 0" --plans "--plans $scratch/absent" \
    "--bundle $scratch/absent.tgz" "--build $scratch/absent"; do
    # shellcheck disable=SC2086  # a flag and its value
    expect_exit 2 timeout 50 "$scripts/gpu_check.sh" $flags
  done
  expect_exit 2 "$scripts/gpu_run.sh"
  expect_exit 2 "$scripts/gpu_run.sh" nonsense
  expect_exit 2 "$scripts/gpu_run.sh" smoke --limit soon
  expect_exit 0 "$scripts/gpu_run.sh" --help
}

run_named_test "${1:-}"
