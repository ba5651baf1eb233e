#!/bin/bash
# Tests jobs on a private Slurm cluster: the roles of tasks, the trained weights, and the loss of tasks and nodes. The
# argument names the test, which runs inside the cluster; CMakeLists.txt lists the tests. Exit code 77: skipped, because
# Slurm is not installed. SYNCOPATE_PROGRAMS has the folders of syncopate and syncopate-bench, separated by colons.
# shellcheck disable=SC2016  # other shells expand these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/slurm/checks.sh
source tests/slurm/checks.sh
quick=(--model mlp --data synthetic:1x8x8:4:2048 --batch-size-per-replica 16 --threads 1 --no-progress --log-every 1)
synchronous=(syncopate train --strategy multi-worker-mirrored)
served=(syncopate train --strategy parameter-server --optimizer sgd)

expect_line() { grep -q "$1" "$2" || fail "no line '$1' in $2: $(cat "$2")"; }
hash_in() { grep -o 'weights hash *[0-9a-f]*' "$1" | grep -o '[0-9a-f]*$'; }

# role_lines FILE...: prints a line such as "worker 1 of 4" for each task that wrote such a file, sorted.
roles() {
  local file
  for file in "$@"; do
    printf '%s %s of %s\n' "$(field role "$file")" "$(field index "$file")" "$(field world_size "$file")"
  done | sort
}
field() { grep -oE "^ *\"$1\": [^,]*" "$2" | sed 's/.*: //; s/"//g'; }

# Each task of a step runs this command, which writes the task's role to a file.
ask='syncopate cluster "$@" >who.$SLURMD_NODENAME.$SLURM_LOCALID.$OMPI_COMM_WORLD_LOCAL_RANK'

a_step_gives_every_task_its_rank() {
  srun --nodes=2 --ntasks=4 --ntasks-per-node=2 bash -c "$ask" ask
  expect_equal "$(roles who.*)" "$(printf 'worker %d of 4\n' 0 1 2 3)"
}

components_give_every_task_its_role() {
  srun --mpi=none --nodes=1 --ntasks=2 bash -c "$ask" ask --role server : \
    --mpi=none --nodes=2 --ntasks=4 --ntasks-per-node=2 bash -c "$ask" ask
  expect_equal "$(roles who.*)" "$(printf '%s of 4\n' 'server 0' 'server 1' 'worker 0' 'worker 1' 'worker 2' 'worker 3')"
}

mpirun_in_a_job_outranks_the_step_of_its_daemons() {
  command -v mpirun >/dev/null || skip "there is no mpirun here"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  salloc --nodes=2 --ntasks=4 --ntasks-per-node=2 mpirun --oversubscribe -np 4 bash -c "$ask" ask
  expect_equal "$(roles who.*)" "$(printf 'worker %d of 4\n' 0 1 2 3)"
  expect_equal "$(field source who.*.0 | sort -u)" "Open MPI"
}

# multi_node NODES: training on NODES nodes gives the bits of that many replicas of one process.
trains_over() {
  srun -K1 --nodes="$1" --ntasks="$1" "${synchronous[@]}" "${quick[@]}" --steps 30 >over.out 2>&1 || fail "$(cat over.out)"
  syncopate train --strategy mirrored --replicas "$1" --share-devices "${quick[@]}" --steps 30 >one.out 2>&1
  expect_equal "$(hash_in over.out)" "$(hash_in one.out)"
}
two_nodes_train_with_the_bits_of_one() { trains_over 2; }
four_nodes_train_with_the_bits_of_one() { trains_over 4; }

two_servers_and_four_workers_learn_digits() {
  srun -K1 --mpi=none --nodes=1 --ntasks=2 syncopate serve : \
    --mpi=none --nodes=4 --ntasks=4 syncopate train --strategy parameter-server --threads 1 --epochs 2 \
    --lr-schedule cosine --no-progress --metrics m.jsonl >out 2>&1 || fail "$(cat out)"
  accuracy=$(grep '"summary"' m.jsonl | grep -oE '"test_accuracy":[0-9.]+' | grep -oE '[0-9.]+$')
  awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.97) }' || fail "test accuracy $accuracy"
}

# In a normal job no variable of Slurm says which tasks are servers.
a_normal_job_serves_where_both_sides_have_the_servers_flag() {
  printf '%s\n' '#!/bin/bash' 'srun -K1 --mpi=none --nodes=1 --ntasks=1 syncopate serve --servers 1 : --mpi=none --nodes=2 --ntasks=2 "$@"' >job
  sbatch --wait --quiet --nodes=3 --ntasks-per-node=1 --output=out job "${served[@]}" --servers 1 "${quick[@]}" --steps 20 \
    --metrics m.jsonl || fail "$(cat out)"
  expect_line '"event":"summary"' m.jsonl
}

trains() { grep -qs '"event":"step"' m.jsonl; }

# The option -K1 is left out, because it would end the other tasks before they can report.
a_synchronous_worker_that_is_killed_is_named() {
  srun --kill-on-bad-exit=0 --nodes=3 --ntasks=3 "${synchronous[@]}" "${quick[@]}" --steps 100000 \
    --service-time constant:20 --metrics m.jsonl >out 2>&1 &
  wait_until 60 trains || fail "$(cat out)"
  kill -9 "$(process_of 1)"
  local began=$SECONDS code=0
  wait $! || code=$?
  ((SECONDS - began <= 15)) || fail "it took $((SECONDS - began)) s: $(cat out)"
  ((code != 0)) || fail "it ended well"
  expect_line 'syncopate: rank 1 (host' out
}

a_killed_worker_of_a_job_with_servers_does_not_end_the_job() {
  srun --kill-on-bad-exit=0 --mpi=none --nodes=1 --ntasks=1 syncopate serve : \
    --mpi=none --nodes=3 --ntasks=3 "${served[@]}" "${quick[@]}" --steps 900 --service-time constant:20 \
    --metrics m.jsonl >out 2>&1 &
  wait_until 60 trains || fail "$(cat out)"
  kill -9 "$(process_of 2)"  # worker 1
  wait $! || true  # srun reports the killed task in its exit code
  expect_line '"event":"summary"' m.jsonl
  grep '"event":"summary"' m.jsonl | grep -q '"steps":900' || fail "$(tail --lines=1 m.jsonl)"
}

a_node_that_is_taken_away_ends_the_job_with_a_line() {
  printf '%s\n' '#!/bin/bash' 'srun -K1 "$@"' >job
  local job began=0
  job=$(sbatch --parsable --nodes=3 --ntasks-per-node=1 --no-requeue --output=out job "${synchronous[@]}" "${quick[@]}" \
    --steps 100000 --service-time constant:20 --metrics m.jsonl)
  wait_until 60 trains || fail "$(cat out)"
  began=$SECONDS
  scontrol update nodename=n2 state=down reason=test
  wait_until 15 grep -qs 'syncopate: ' out || fail "after $((SECONDS - began)) s: $(cat out)"
  expect_equal "$(grep -c '^syncopate: ' out)" 1
  wait_until 15 job_failed "$job" || fail "$(scontrol -o show job "$job")"
}
job_failed() { scontrol -o show job "$1" | grep -q 'JobState=NODE_FAIL'; }

# This test has four nodes for workers and one for servers.
[[ ${1:-} == --inside ]] || in_cluster 5 tests/slurm/training_test.sh "$@"
shift
cd "$scratch"
run_named_test "$@"
