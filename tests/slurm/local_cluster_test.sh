#!/bin/bash
# Tests deploy/slurm/local_cluster.sh: start, command, exit code, and clean-up. The argument names the test;
# CMakeLists.txt lists the tests. Exit code 77: skipped, because Slurm is not installed.
# shellcheck disable=SC2016  # other shells expand these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/slurm/checks.sh
source tests/slurm/checks.sh
cluster=deploy/slurm/local_cluster.sh

runs_steps_on_all_its_nodes() {
  local nodes
  nodes=$("$cluster" --nodes 3 -- srun --nodes=3 --ntasks-per-node=2 bash -c 'echo "$SLURMD_NODENAME"' | sort | paste -sd ' ')
  expect_equal "$nodes" "n1 n1 n2 n2 n3 n3"
}

passes_on_exit_status_and_standard_input() {
  expect_exit 7 "$cluster" --nodes 1 -- bash -c 'exit 7'
  expect_equal "$(echo hello | "$cluster" --nodes 1 -- cat)" hello
}

leaves_neither_processes_nor_files() {
  local conf
  conf=$("$cluster" --nodes 2 -- bash -c 'sbatch --quiet --output=/dev/null --wrap "sleep 1000"
    sleep 1000 >/dev/null & srun --nodes=2 --ntasks=2 true; echo "$SLURM_CONF"')
  expect_gone "$conf"
}

leaves_nothing_when_it_is_killed() {
  local conf=$scratch/conf
  "$cluster" --nodes 1 -- bash -c 'echo "$SLURM_CONF" >"$0.new"; mv "$0.new" "$0"; exec srun sleep 1000' "$conf" &
  wait_until 60 test -s "$conf"
  kill -KILL $!
  wait_until 30 is_gone "$(<"$conf")" || true
  expect_gone "$(<"$conf")"
}

ends_the_command_after_the_time_out() {
  local conf=$scratch/conf
  expect_exit 124 "$cluster" --nodes 1 --timeout 1 -- bash -c 'echo "$SLURM_CONF" >"$0"; srun sleep 1000' "$conf"
  expect_gone "$(<"$conf")"
}

runs_several_at_once() {
  local number code=0
  local -a running=()
  for number in 1 2 3; do
    "$cluster" --nodes 2 -- srun --nodes=2 --ntasks=2 echo "cluster $number" >"$scratch/$number" &
    running+=($!)
  done
  for number in "${running[@]}"; do wait "$number" || code=$?; done
  expect_equal "$code" 0
  for number in 1 2 3; do
    expect_equal "$(sort -u "$scratch/$number")" "cluster $number"
    expect_equal "$(wc -l <"$scratch/$number")" 2
  done
}

starts_heterogeneous_jobs() {
  local said
  said=$("$cluster" --nodes 2 -- srun --ntasks=1 echo server : --ntasks=1 echo worker | sort | paste -sd ' ')
  expect_equal "$said" "server worker"
}

requeues_a_job_whose_node_is_taken_away() {
  "$cluster" --nodes 2 -- bash -c 'cd "$0"
    job=$(sbatch --parsable --requeue --open-mode=append --nodelist=n1 --output=out --wrap "
      echo run \${SLURM_RESTART_COUNT:-0}; test -n \"\${SLURM_RESTART_COUNT:-}\" || sleep 1000")
    for ((i = 0; i < 600; ++i)); do grep -qs "run 0" out && break; sleep 0.1; done
    scontrol update nodename=n1 state=down reason=test
    scontrol update job="$job" ReqNodeList=n2
    for ((i = 0; i < 600; ++i)); do grep -qs "run 1" out && exit 0; sleep 0.1; done
    scontrol show job "$job"; exit 1' "$scratch"
  expect_equal "$(grep -c '^run' "$scratch/out")" 2
}

keeps_its_logs_on_request() {
  "$cluster" --nodes 1 --keep-logs "$scratch/logs" -- true
  [[ -s $scratch/logs/slurmctld.log && -s $scratch/logs/n1.log ]] || fail "no logs in: $(ls "$scratch/logs")"
}

names_wrong_usage_in_one_line() {
  expect_exit 2 "$cluster" --nodes none -- true
  expect_exit 2 "$cluster" --cpus 0 -- true
  expect_exit 2 "$cluster" --fast -- true
  expect_exit 2 "$cluster"
}

is_skipped_where_there_is_no_slurm() {
  mkdir "$scratch/bin"
  ln -s /usr/bin/{bash,cat} "$scratch/bin"
  expect_exit 77 env PATH="$scratch/bin" "$cluster" -- true
}

case ${1:-} in names_wrong_usage* | is_skipped*) ;; *) need_slurm ;; esac
run_named_test "$@"
