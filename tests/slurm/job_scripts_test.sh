#!/bin/bash
# Tests the job scripts of deploy/slurm on a private Slurm cluster. The argument names the test, which runs inside
# the cluster; CMakeLists.txt lists the tests. Exit code 77: skipped, because Slurm is not installed.
# SYNCOPATE_PROGRAMS has the folders of syncopate and syncopate-bench, separated by colons.
# shellcheck disable=SC2016  # other shells expand these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/slurm/checks.sh
source tests/slurm/checks.sh
scripts=$PWD/deploy/slurm
quick=(--model mlp --data synthetic:1x8x8:4:2048 --batch-size-per-replica 16 --log-every 1)

submit() { sbatch --parsable "$@"; }
state_of() { scontrol -o show job "$1" | grep -o 'JobState=[A-Z_]*'; }
has_ended() { ! state_of "$1" | grep -qE 'PENDING|CONFIGURING|RUNNING|COMPLETING|SUSPENDED'; }

# Fails unless all components of the job complete.
expect_completed() {
  wait_until 150 has_ended "$1" || true
  [[ $(state_of "$1" | sort -u) == JobState=COMPLETED ]] ||
    fail "job $1: $(state_of "$1" | paste -sd ' '); it said: $(cat ./*"-$1.out" runs/*"-$1"/runs/*.log 2>/dev/null)"
}
expect_line() { grep -q "$1" "$2" || fail "no line '$1' in $2: $(cat "$2")"; }
summaries_in() { grep -c '"event":"summary"' "$1" || true; }

one_node_trains_in_one_process() {
  local job
  job=$(submit "$scripts/one_node.sbatch" "${quick[@]}" --steps 20)
  expect_completed "$job"
  expect_line 'mirrored: 2 replicas in 1 task' "syncopate-one-node-$job.out"
  expect_equal "$(summaries_in "runs/syncopate-one-node-$job/metrics.jsonl")" 1
}

# is_requeued_and_resumes SCRIPT NAME: NAME is the job's name in the script.
is_requeued_and_resumes() {
  local job output
  job=$(submit "$scripts/$1.sbatch" "${quick[@]}" --steps 1000 --service-time constant:50)
  output=syncopate-$2-$job.out
  wait_until 60 grep -qs '"event":"step"' "runs/syncopate-$2-$job/metrics.jsonl" || fail "no step: $(cat "$output")"
  scancel --batch --signal=USR1 "$job"
  wait_until 60 grep -qs 'resumed from' "$output" || fail "it did not resume: $(cat "$output")"
  expect_line 'stopped by SIGUSR1 after step' "$output"
  scancel "$job"
  wait_until 60 has_ended "$job" || fail "scancel did not end it"
}
one_node_is_requeued_and_resumes() {
  is_requeued_and_resumes one_node one-node
}
multi_node_is_requeued_and_resumes() {
  is_requeued_and_resumes multi_node multi-node
}
parameter_server_is_requeued_and_resumes() {
  is_requeued_and_resumes parameter_server_het parameter-server
}

# The signal comes before the step starts; Slurm sends it once. The copy of the script sleeps, so that it does come then.
a_request_that_comes_early_is_not_lost() {
  local job
  sed 's/^mkdir -p "$RUN"/&; sleep 3/' "$scripts/one_node.sbatch" >one_node.sbatch
  job=$(submit one_node.sbatch "${quick[@]}" --steps 100000 --service-time constant:50)
  wait_until 60 test -e "runs/syncopate-one-node-$job" || fail "it did not start"
  scancel --batch --signal=USR1 "$job"
  wait_until 60 has_been_started_again "$job" || fail "$(scontrol -o show job "$job"); $(cat "syncopate-one-node-$job.out")"
  scancel "$job"
  wait_until 60 has_ended "$job" || fail "scancel did not end it"
}
has_been_started_again() { scontrol -o show job "$1" | grep -q ' Restarts=1 '; }

multi_node_trains_under_srun() {
  local job
  job=$(submit "$scripts/multi_node.sbatch" "${quick[@]}" --steps 20)
  expect_completed "$job"
  expect_line 'multi-worker-mirrored: 2 replicas in 2 tasks' "syncopate-multi-node-$job.out"
  expect_equal "$(summaries_in "runs/syncopate-multi-node-$job/metrics.jsonl")" 1
}

multi_node_trains_under_mpirun() {
  export ASAN_OPTIONS=detect_leaks=0  # in a build with sanitizers, MPI leaks
  command -v mpirun >/dev/null || skip "there is no mpirun here"
  local job
  sed 's/^LAUNCHER=srun/LAUNCHER=mpirun/' "$scripts/multi_node.sbatch" >multi_node.sbatch
  job=$(submit multi_node.sbatch "${quick[@]}" --steps 20)
  expect_completed "$job"
  expect_line 'multi-worker-mirrored: 2 replicas in 2 tasks' "syncopate-multi-node-$job.out"
}

parameter_server_trains_in_two_components() {
  local job
  job=$(submit "$scripts/parameter_server_het.sbatch" "${quick[@]}" --steps 40)
  expect_completed "$job"
  expect_equal "$(summaries_in "runs/syncopate-parameter-server-$job/metrics.jsonl")" 1
}

an_asynchronous_job_goes_on_without_a_worker_that_died() {
  local job output metrics
  job=$(submit "$scripts/parameter_server_het.sbatch" "${quick[@]}" --steps 900 --service-time constant:20)
  output=syncopate-parameter-server-$job.out metrics=runs/syncopate-parameter-server-$job/metrics.jsonl
  wait_until 60 grep -qs '"event":"step"' "$metrics" || fail "no step: $(cat "$output")"
  kill -9 "$(process_of 2)"  # worker 1; the server is task 0
  wait_until 100 has_ended "$job" || fail "it goes on: $(cat "$output")"
  expect_line 'worker 1 (host' "$output"
  grep '"event":"summary"' "$metrics" | grep -q '"steps":900' || fail "$(tail --lines=1 "$metrics"); $(cat "$output")"
}

a_failing_task_ends_the_job_with_its_code() {
  local job
  job=$(submit "$scripts/one_node.sbatch" --model no-such-network)
  wait_until 60 has_ended "$job" || fail "it goes on"
  scontrol -o show job "$job" | grep -q 'ExitCode=2:0' || fail "$(scontrol -o show job "$job")"
}

compare_reports_every_strategy() {
  local job
  job=$(submit "$scripts/compare.sbatch" "${quick[@]}" --steps 40)
  expect_completed "$job"
  for strategy in one-device mirrored central-storage multi-worker-mirrored parameter-server:async parameter-server:sync; do
    expect_line "^$strategy " "syncopate-compare-$job.out"
  done
  ! grep -q 'failed with' "syncopate-compare-$job.out" || fail "$(cat "syncopate-compare-$job.out" runs/*/runs/*.log)"
  [[ -s runs/syncopate-compare-$job/report.html ]] || fail "no report.html in $(ls "runs/syncopate-compare-$job")"
  local described
  described=$(tr -d ' \n' <"runs/syncopate-compare-$job/comparison.json")
  for row in '"one-device"[^}]*"distributed":false[^}]*"keeps_step":true' \
    '"parameter-server:async"[^}]*"distributed":true[^}]*"keeps_step":false' \
    '"parameter-server:sync"[^}]*"distributed":true[^}]*"keeps_step":true'; do
    grep -qE "\"label\":$row" <<<"$described" || fail "no $row in $described"
  done
}

compare_resumes_an_interrupted_comparison() {
  local job
  job=$(submit "$scripts/compare.sbatch" "${quick[@]}" --steps 40 --service-time constant:50)
  wait_until 100 test -e "runs/syncopate-compare-$job/runs/mirrored-1.jsonl" || fail "$(cat "syncopate-compare-$job.out")"
  scancel --batch --signal=USR1 "$job"
  expect_completed "$job"
  scontrol -o show job "$job" | grep -q ' Restarts=1 ' || fail "it was not started again: $(scontrol -o show job "$job")"
  expect_equal "$(grep -c '^one-device, seed 1' "syncopate-compare-$job.out")" 1
  expect_line '^parameter-server:sync  ' "syncopate-compare-$job.out"
}

# Parameter servers refuse synchronised statistics; the other strategies are still compared.
compare_reports_failures_and_their_reasons() {
  local job
  job=$(submit "$scripts/compare.sbatch" "${quick[@]}" --steps 10 --batch-norm sync)
  expect_completed "$job"
  # The exit code is 2, or that of a task that srun ended because another had failed.
  expect_line '  failed with [0-9]*: syncopate: --batch-norm sync' "syncopate-compare-$job.out"
  expect_line '^mirrored .* [0-9]' "syncopate-compare-$job.out"
  expect_line '"event": "failure", "reason": "syncopate: --batch-norm sync' "runs/syncopate-compare-$job/runs/parameter-server_sync-1.jsonl"
}

# A project with the same preset and targets stands in for ours, which takes minutes.
build_builds_where_it_is_submitted() {
  local job
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(stand_in NONE)' \
    'file(WRITE ${CMAKE_BINARY_DIR}/deploy/syncopate "#!/bin/sh\necho stand-in $1\n")' \
    'file(CHMOD ${CMAKE_BINARY_DIR}/deploy/syncopate PERMISSIONS OWNER_READ OWNER_EXECUTE)' \
    'add_custom_target(syncopate)' 'add_custom_target(syncopate-bench)' >CMakeLists.txt
  cp "$scripts/../../CMakePresets.json" .
  job=$(submit "$scripts/build.sbatch")
  expect_completed "$job"
  expect_line 'stand-in info' "syncopate-build-$job.out"
}

modules_count_where_nothing_else_is_exported() {
  local job script
  printf '%s\n' '#!/bin/bash' 'echo "rank $SLURM_PROCID has ${FROM_MODULE:-nothing}"' >program
  chmod +x program
  for script in one_node multi_node parameter_server_het; do
    sed "s|^# module purge|export FROM_MODULE=it|; s|^PROGRAM=.*|PROGRAM=$PWD/program|" "$scripts/$script.sbatch" >"$script.sbatch"
    job=$(submit --export=NONE --output=out "$script.sbatch")
    expect_completed "$job"
    expect_line 'rank 0 has it' out
    ! grep -q 'has nothing' out || fail "$(cat out)"
    rm out
  done
}

a_job_that_must_not_return_to_the_queue_says_how_to_go_on() {
  syncopate sbatch --strategy one-device --sbatch-option no-requeue -- "${quick[@]}" --steps 100000 \
    --service-time constant:50 >said
  local job output
  job=$(grep -oE '[0-9]+' said)
  output=syncopate-one-node-$job.out
  wait_until 60 grep -qs '"event":"step"' "runs/syncopate-one-node-$job/metrics.jsonl" || fail "no step: $(cat "$output")"
  scancel --batch --signal=USR1 "$job"
  wait_until 60 has_ended "$job" || fail "it goes on: $(cat "$output")"
  scontrol -o show job "$job" | grep -q 'ExitCode=75:0' || fail "$(scontrol -o show job "$job")"
  expect_line "submit it again with --checkpoint-dir $PWD/runs/syncopate-one-node-$job/checkpoints" "$output"
  job=$(syncopate sbatch --strategy one-device -- "${quick[@]}" --steps 1 \
    --checkpoint-dir "$PWD/runs/syncopate-one-node-$job/checkpoints" | grep -oE '[0-9]+')
  expect_completed "$job"
  expect_line 'resumed from' "syncopate-one-node-$job.out"
}

the_elements_of_an_array_train_different_seeds() {
  local job element
  job=$(syncopate sbatch --strategy one-device --array seed=1-2 -- "${quick[@]}" --steps 20 | grep -oE '[0-9]+')
  for element in 1 2; do
    wait_until 150 has_ended "${job}_$element" || fail "$(scontrol -o show job "$job")"
    grep -oE 'weights_hash":"[0-9a-f]+' "runs/syncopate-one-node-$job/seed-$element/metrics.jsonl" >>hashes ||
      fail "no result of seed $element: $(cat ./*.out)"
  done
  expect_equal "$(sort -u hashes | wc -l)" 2
}

# Slurm gives the last element that starts the number of the array.
one_element_of_an_array_is_requeued() {
  local job last
  job=$(syncopate sbatch --strategy one-device --array seed=1-2 -- "${quick[@]}" --steps 1000 --service-time constant:50 |
    grep -oE '[0-9]+')
  for element in 1 2; do
    wait_until 60 grep -qs '"event":"step"' "runs/syncopate-one-node-$job/seed-$element/metrics.jsonl" ||
      fail "no step: $(cat ./*.out)"
    if [[ $(state_of "${job}_$element" | wc -l) == 1 ]] && scontrol -o show job "${job}_$element" | grep -q "^JobId=$job "; then
      last=$element
    fi
  done
  scancel --batch --signal=USR1 "${job}_$last"
  wait_until 60 has_been_started_again "${job}_$last" || fail "$(scontrol -o show job "$job"); $(cat ./*.out)"
  scontrol -o show job "${job}_$((3 - last))" | grep -q ' Restarts=0 ' || fail "the other one too: $(scontrol -o show job "$job")"
  scancel "$job"
  wait_until 60 has_ended "$job" || fail "scancel did not end it"
}

the_program_submits_a_job_itself() {
  syncopate sbatch --strategy multi-worker-mirrored --nodes 3 --cpus-per-task 1 -- "${quick[@]}" --steps 20 >said
  local job
  job=$(grep -oE '[0-9]+' said)
  expect_completed "$job"
  expect_line 'multi-worker-mirrored: 3 replicas in 3 tasks' "syncopate-multi-node-$job.out"
}

[[ ${1:-} == --inside ]] || in_cluster 3 tests/slurm/job_scripts_test.sh "$@"
shift
cd "$scratch"
run_named_test "$@"
