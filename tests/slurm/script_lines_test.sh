#!/bin/bash
# Tests the commands that the job scripts of deploy/slurm start. Programs that record their arguments stand in for srun,
# mpirun and syncopate. The argument names the test; CMakeLists.txt lists the tests. Slurm is not needed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# shellcheck source=tests/slurm/checks.sh
source tests/slurm/checks.sh
scripts=$PWD/deploy/slurm

mkdir "$scratch/bin"
for name in srun mpirun scontrol syncopate-bench; do
  # shellcheck disable=SC2016  # the recording program expands this text
  printf '%s\n' '#!/bin/bash' 'echo "export=${SLURM_EXPORT_ENV:-} ${0##*/} $*" >>called' \
    'echo "${SYNCOPATE_NONCE:-}" >secret' "exit_code=exit_code_of_${name/-/_}" 'exit "${!exit_code:-0}"' >"$scratch/bin/$name"
done
chmod +x "$scratch/bin/"*
cd "$scratch"

flags=()  # of train
# Runs a script in a job of three tasks; in a heterogeneous job one of them is a server.
run_script() {
  env PATH="$scratch/bin:$PATH" SLURM_EXPORT_ENV=NONE SLURM_JOB_NAME=job SLURM_JOB_ID=1 SLURM_NTASKS=3 \
    SLURM_NTASKS_HET_GROUP_0=1 SLURM_NTASKS_HET_GROUP_1=2 "${@:2}" bash "$1" "${flags[@]}" >said 2>&1
}
called() { if [[ -e called ]]; then cat called; fi; }
expect_call() { called | grep -qE -- "$1" || fail "no call '$1' in: $(called) -- $(cat said)"; }

srun_hands_the_environment_on_to_every_component() {
  local script components
  for script in "$scripts"/*.sbatch; do
    rm -f called
    run_script "$script" || fail "$script: $(cat said)"
    expect_call ' srun '
    components=$(called | grep ' srun ' | sed 's/ : /\n/g' | wc -l)
    expect_equal "$(called | grep ' srun ' | sed 's/ : /\n/g' | grep -c -- ' --export=ALL ')" "$components"
  done
  expect_equal "$components" 2  # the last script is that of the heterogeneous job
}

tasks_receive_a_new_secret_that_is_no_argument() {
  local script before
  for script in "$scripts"/{multi_node,parameter_server_het,compare}.sbatch; do
    rm -f called
    before=$(cat secret 2>/dev/null || true)
    run_script "$script" || fail "$script: $(cat said)"
    grep -qE '^[0-9a-f]{32}$' secret || fail "no secret: $(cat secret)"
    [[ $(cat secret) != "$before" ]] || fail "the secret of an earlier job"
    ! called | grep -q "$(cat secret)" || fail "ps would show it: $(called)"
  done
}

mpirun_hands_the_environment_on_to_its_daemons() {
  sed 's/^LAUNCHER=srun/LAUNCHER=mpirun/' "$scripts/multi_node.sbatch" >multi_node.sbatch
  run_script multi_node.sbatch || fail "$(cat said)"
  expect_call '^export=ALL mpirun '
}

mpirun_sums_gradients_with_mpi_but_those_of_a_pipeline() {
  sed 's/^LAUNCHER=srun/LAUNCHER=mpirun/' "$scripts/multi_node.sbatch" >multi_node.sbatch
  run_script multi_node.sbatch
  expect_call ' mpirun .* --collective mpi'
  sed -i 's/^TRAIN=.*/TRAIN=(--strategy pipeline --epochs 1)/' multi_node.sbatch
  local more
  for more in "" "--steps 5" "--strategy multi-worker-mirrored --strategy=pipeline --steps 5"; do
    rm called
    read -ra flags <<<"$more"
    run_script multi_node.sbatch
    expect_call ' mpirun .* --strategy pipeline'
    ! called | grep -q -- '--collective' || fail "stages sum nothing: $(called)"
  done
  flags=(--strategy multi-worker-mirrored)
  run_script multi_node.sbatch
  expect_call ' --collective mpi'
}

# A task that does not know the number of tasks would train alone.
tasks_receive_the_number_of_tasks() {
  run_script "$scripts/multi_node.sbatch"
  expect_call ' train --world-size 3 '
  rm called
  run_script "$scripts/parameter_server_het.sbatch"
  expect_call ' train --world-size 2 .* : .* train --world-size 2 '
  rm called
  run_script "$scripts/compare.sbatch"
  expect_call ' --strategy multi-worker-mirrored --world-size 2 '
  expect_equal "$(called | grep -c -- '--strategy parameter-server --servers 1 ')" 2
}

elements_of_an_array_train_with_their_own_seed_and_folder() {
  local script
  for script in one_node multi_node; do
    rm -f called
    run_script "$scripts/$script.sbatch" SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3 || fail "$(cat said)"
    expect_call " --checkpoint-dir $PWD/runs/job-7/seed-3/checkpoints .* --seed 3\$"
    rm called
    run_script "$scripts/$script.sbatch"
    expect_call " --checkpoint-dir $PWD/runs/job-1/checkpoints "
    ! called | grep -q -- '--seed' || fail "$(called)"
  done
}

# One element of an array has the number of the whole array in SLURM_JOB_ID: Slurm would requeue all elements.
a_job_returns_to_the_queue_without_the_other_elements_of_its_array() {
  local script
  for script in one_node multi_node compare; do
    rm -f called
    expect_exit 75 run_script "$scripts/$script.sbatch" exit_code_of_srun=75 SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=7 \
      SLURM_ARRAY_TASK_ID=3
    expect_call ' scontrol requeue 7_3$'
  done
  for script in one_node multi_node compare parameter_server_het; do
    rm -f called
    expect_exit 75 run_script "$scripts/$script.sbatch" exit_code_of_srun=75
    expect_call ' scontrol requeue 1$'
  done
}

# With the array and one --checkpoint-dir, all elements would share the checkpoints.
an_element_of_an_array_goes_on_as_a_job_of_its_own() {
  local script
  for script in one_node multi_node; do
    expect_exit 75 run_script "$scripts/$script.sbatch" exit_code_of_srun=75 exit_code_of_scontrol=1 \
      SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3
    grep -q "submit it again without --array, with --seed 3 --checkpoint-dir $PWD/runs/job-7/seed-3/checkpoints\$" said ||
      fail "$(cat said)"
    expect_exit 75 run_script "$scripts/$script.sbatch" exit_code_of_srun=75 exit_code_of_scontrol=1
    grep -q "submit it again with --checkpoint-dir $PWD/runs/job-1/checkpoints\$" said || fail "$(cat said)"
  done
}

tasks_on_gpus_request_their_share_of_the_cpus() {
  mkdir slurm
  printf '%s\n' '#!/bin/sh' 'echo "NodeName=a CPUEfctv=64 CPUTot=64 Gres=gpu:4 Partitions=gpu"' >slurm/scontrol
  chmod +x slurm/scontrol
  PATH=$PWD/slurm:$SYNCOPATE_PROGRAMS:$PATH syncopate sbatch --print --strategy multi-worker-mirrored --gres gpu:2 \
    --partition gpu -- --devices cuda >script 2>said
  grep -qx '#SBATCH --cpus-per-task=16' script || fail "$(cat script said)"
  PATH=$PWD/slurm:$SYNCOPATE_PROGRAMS:$PATH syncopate sbatch --print --strategy multi-worker-mirrored --gres gpu:8 \
    --partition gpu -- --devices cuda >script 2>said
  grep -qx '#SBATCH --cpus-per-task=2' script || fail "$(cat script said)"
  grep -q 'give --cpus-per-task' said || fail "$(cat said)"
}

# expect_cpus CPUS [FLAG...]: the request of `syncopate sbatch` on nodes of 4 GPUs and 32 CPUs.
expect_cpus() {
  PATH=$PWD/slurm:$SYNCOPATE_PROGRAMS:$PATH syncopate sbatch --print --strategy multi-worker-mirrored "${@:2}" >script 2>said
  grep -qx "#SBATCH --cpus-per-task=$1" script || fail "$(cat script said)"
  expect_equal "$(cat said)" ""
}
the_nodes_of_the_script_and_lists_of_partitions_count_for_the_cpus() {
  mkdir slurm
  printf '%s\n' '#!/bin/sh' 'echo "NodeName=a CPUEfctv=32 CPUTot=32 Gres=gpu:4 Partitions=gpu,big"' >slurm/scontrol
  chmod +x slurm/scontrol
  expect_cpus 8 --sbatch-option gpus=8 -- --devices cuda
  expect_cpus 8 --gres gpu:4 --partition gpu,long -- --devices cuda
  expect_cpus 8 --gres gpu:4 --partition long,big -- --devices cuda
  expect_cpus 32 --nodes 2 --gres gpu:4 -- --devices cuda --replicas 4
  grep -qx '#SBATCH --ntasks-per-node=1' script || fail "$(cat script)"
}

a_heterogeneous_script_needs_two_components() {
  local group
  for group in 0 1; do
    expect_exit 2 run_script "$scripts/parameter_server_het.sbatch" "SLURM_NTASKS_HET_GROUP_$group="
    grep -q "SLURM_NTASKS_HET_GROUP_$group is not set: expected two components" said || fail "$(cat said)"
    expect_equal "$(called)" ""
  done
}

# expect_ending 0|1 FLAG...: whether srun ends the step of these flags when a worker dies.
expect_ending() {
  flags=("${@:2}")
  rm -f called
  run_script "$scripts/parameter_server_het.sbatch"
  expect_call " srun --kill-on-bad-exit=$1 "
}
workers_that_others_need_end_the_step() {
  expect_ending 0
  expect_ending 0 --consistency ssp --max-staleness 2
  expect_ending 1 --consistency sync
  expect_ending 1 --consistency=sync --steps 5
  expect_ending 0 --consistency=sync --backup-workers 1
  expect_ending 0 --consistency sync --consistency async
  flags=()
  rm called
  run_script "$scripts/multi_node.sbatch"
  expect_call ' srun -K1 '
}

run_named_test "$@"
