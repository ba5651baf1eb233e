#!/bin/bash
# Runs a private Slurm cluster on this machine while one command runs: munge, slurmctld and several slurmd
# on loopback. It serves tests of job scripts, heterogeneous jobs, signals and requeueing, and needs neither
# root nor systemd nor cgroups. The README of this folder lists what it cannot test.
# shellcheck disable=SC2317  # the functions that look unreachable are arguments of until_true
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/slurm/local_cluster.sh [FLAGS] -- COMMAND [ARGUMENT...]

  --nodes N         how many nodes, named n1 to nN (4)
  --cpus N          of each node; they need not exist (8)
  --timeout S       seconds that COMMAND may take (300)
  --keep-logs DIR   copy the logs of all daemons there at the end
  --help            this text

Starts the cluster, runs COMMAND with SLURM_CONF set (sinfo, srun, sbatch and the others then speak to
this cluster), and takes everything down again, whatever happens. Several may run at once.
COMMAND can take a node away: scontrol update nodename=n2 state=down reason=test

exit code: COMMAND's; 124: it took longer than --timeout; 77: Slurm or munge is not installed;
2: wrong usage; 1: the cluster did not start
TEXT
}

say() { printf '%s\n' "local_cluster: $*" >&2; }
wrong_usage() {
  say "$*; see deploy/slurm/local_cluster.sh --help"
  exit 2
}

nodes=4
cpus=8
timeout=300
keep_logs=""
folder=""  # holds all files of the cluster
guard=""   # process id of guard()
port=0     # port of slurmctld; the ports of the nodes, and those that Slurm reserves for steps, follow
readonly ports_of_a_cluster=400
readonly first_reserved_port=100

# Prints the processes of the cluster in folder $1. slurmstepd and slurmscriptd overwrite their environment and are
# recognised by an open file in the folder; all others, also children of the command, by their variable SLURM_CONF.
processes_of() {
  local entry
  while read -r entry; do
    entry=${entry%/*}
    if [[ $(readlink "$entry"/fd/* 2>/dev/null) == *"$1/"* ]]; then echo "${entry#/proc/}"; fi
  done < <(grep -lxE 'slurm(stepd|scriptd)' /proc/[0-9]*/comm 2>/dev/null)
  while read -r entry; do
    entry=${entry%/*}
    echo "${entry#/proc/}"
  done < <(grep -lazxF "SLURM_CONF=$1/slurm.conf" /proc/[0-9]*/environ 2>/dev/null)
}

# until_true SECONDS COMMAND...: repeats COMMAND until it succeeds; false when it has not succeeded in that time.
until_true() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

no_jobs() { [[ -z $(timeout 5 squeue --noheader 2>/dev/null) ]]; }
no_processes() { [[ -z $(processes_of "$folder") ]]; }

# Ends the jobs before the daemons, because a step does not end without its slurmctld.
tear_down() {
  [[ -d $folder ]] || return 0
  if ! no_jobs; then
    timeout 5 scancel --quiet --state=PENDING --user="$(id -un)" 2>/dev/null || true
    timeout 5 scancel --quiet --full --signal=KILL --user="$(id -un)" 2>/dev/null || true
    until_true 4 no_jobs || true
  fi
  timeout 5 scontrol shutdown >/dev/null 2>&1 || true
  # scontrol does not stop munged, which is not part of Slurm.
  [[ ! -s $folder/munge/pid ]] || kill "$(<"$folder/munge/pid")" 2>/dev/null || true
  until_true 3 no_processes || kill_processes
  if [[ -n $keep_logs ]]; then
    mkdir -p "$keep_logs" || true
    cp -r "$folder/log/." "$folder/slurm.conf" "$keep_logs" || true
  fi
  rm -rf "$folder"
}

kill_processes() {
  local process
  for process in $(processes_of "$folder"); do kill -KILL "$process" 2>/dev/null || true; done
  until_true 5 no_processes || say "these are still there: $(processes_of "$folder" | paste -s)"
}

# Waits for the end of this script, which closes the pipe, and tears down what is left of the cluster: all of
# it when the script was killed.
guard() {
  trap '' INT TERM HUP
  cat >/dev/null
  tear_down
}

finish() {
  trap '' INT TERM HUP
  tear_down
  exec 3>&-
  if [[ -n $guard ]]; then wait "$guard" || true; fi
}

require_programs() {
  local program
  for program in munged munge unmunge slurmctld slurmd sinfo squeue scancel scontrol; do
    command -v "$program" >/dev/null && continue
    say "there is no $program here; install the Debian packages slurm-wlm and munge"
    exit 77
  done
}

listening_ports() {
  local address state _
  while read -r _ address _ state _; do
    if [[ $state == 0A ]]; then echo "$((16#${address##*:}))"; fi
  done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
}

# Chooses free ports below 32768, where the kernel's ephemeral ports begin.
choose_ports() {
  local listening taken
  listening=$(listening_ports)
  for ((port = 16000; port < 32000; port += ports_of_a_cluster)); do
    for taken in $listening; do
      if ((taken >= port && taken < port + ports_of_a_cluster)); then continue 2; fi
    done
    return
  done
  say "there are no $ports_of_a_cluster free ports in a row from 16000 to 32000"
  exit 1
}

# The README of this folder gives the reasons for the settings.
write_configuration() {
  local user
  user=$(id -un)
  : >"$folder/plugstack.conf"
  echo 'CgroupPlugin=cgroup/v1' >"$folder/cgroup.conf"
  echo 'PMIxCollFence=ring' >"$folder/mpi.conf"
  cat >"$folder/slurm.conf" <<CONF
ClusterName=local
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
TmpFS=$folder/tmp/%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/%n.log
JobCompType=jobcomp/filetxt
JobCompLoc=$folder/log/jobs.txt
PlugStackConfig=$folder/plugstack.conf
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MpiParams=ports=$((port + first_reserved_port))-$((port + ports_of_a_cluster - 1))
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,bf_hetjob_immediate,sched_interval=1
PropagateResourceLimits=NONE
ReturnToService=2
SlurmdTimeout=6
KillWait=2
MinJobAge=3600
NodeName=n[1-$nodes] NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((port + 1))-$((port + nodes)) CPUs=$cpus RealMemory=4000 State=UNKNOWN
PartitionName=main Nodes=n[1-$nodes] Default=YES MaxTime=INFINITE State=UP
CONF
}

# Starts a daemon in foreground mode, so that it remains a child of this script.
start_daemon() {
  local name=$1
  shift
  "$@" </dev/null >"$folder/log/$name.out" 2>&1 3>&- &
  disown
}

start_munge() {
  mkdir -m 711 "$folder/munge"  # munged refuses a folder with mode 700
  (umask 077 && head -c 128 /dev/urandom >"$folder/munge/key")
  start_daemon munged munged --foreground --num-threads=2 --key-file="$folder/munge/key" \
    --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" --log-file="$folder/log/munged.log" \
    --seed-file="$folder/munge/seed"
  until_true 10 munge_answers
}

munge_answers() {
  munge --no-input --socket="$folder/munge/socket" 2>/dev/null |
    unmunge --socket="$folder/munge/socket" >/dev/null 2>&1
}

all_nodes_idle() { [[ $(sinfo --noheader --Node --format=%T 2>/dev/null | grep -cx idle) == "$nodes" ]]; }

start_slurm() {
  local node
  start_daemon slurmctld slurmctld -D -f "$SLURM_CONF"
  for ((node = 1; node <= nodes; ++node)); do
    mkdir -p "$folder/spool/n$node" "$folder/tmp/n$node"
    start_daemon "n$node" slurmd -D -N "n$node" -f "$SLURM_CONF"
  done
  until_true 60 all_nodes_idle
}

start_cluster() {
  local lock
  umask 022
  folder=$(mktemp -d /tmp/slurm.XXXXXX)  # a short path, because the length of a socket's path is limited
  chmod 755 "$folder"
  exec 3> >(guard)
  guard=$!
  mkdir "$folder"/{log,state,spool,tmp}
  export SLURM_CONF=$folder/slurm.conf
  # The lock lets one cluster at a time choose and open its ports. All users can lock slurmctld's file.
  exec {lock}<"$(command -v slurmctld)"
  flock --timeout 120 "$lock" || say "going on without a lock: another cluster has been starting for two minutes"
  choose_ports
  write_configuration
  if ! start_munge || ! start_slurm; then
    say "the cluster did not start; the ends of its logs:"
    tail --lines=5 "$folder"/log/* >&2 || true
    exit 1
  fi
  flock --unlock "$lock"
  exec {lock}<&-
}

# This script itself may run in a Slurm job or under mpirun, whose variables must not reach the cluster.
clear_environment() {
  local variable
  for variable in "${!SLURM@}" "${!SBATCH_@}" "${!SALLOC_@}" "${!SRUN_@}" "${!PMI@}" "${!OMPI_@}"; do
    unset "$variable"
  done
}

# All nodes are this machine, which has fewer CPUs than they claim. They share its host name, so Open MPI's shared
# memory would treat two nodes as one; TCP over loopback is used instead.
prepare_open_mpi() {
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
  export OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_oob_tcp_if_include=lo
}

run_command() {
  local code=0 command begin=$SECONDS
  timeout --kill-after=5 "$timeout" "$@" <&0 3>&- &
  command=$!
  # `timeout` runs in its own process group, to which it passes on signals.
  trap 'kill -TERM "$command" 2>/dev/null || true' TERM INT HUP
  wait "$command" || code=$?
  while kill -0 "$command" 2>/dev/null; do  # a signal interrupted wait; the command still runs
    code=0
    wait "$command" || code=$?
  done
  if ((code == 137 && SECONDS - begin >= timeout)); then code=124; fi  # the command ignored SIGTERM
  if ((code == 124)); then say "the command took longer than $timeout s (--timeout)"; fi
  return "$code"
}

require_number() {
  if [[ ! $2 =~ ^[1-9][0-9]{0,5}$ ]] || (($2 > $3)); then
    wrong_usage "$1 '$2': expected a number from 1 to $3"
  fi
}

while (($# > 0)) && [[ $1 != -- ]]; do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --nodes)
      require_number "$1" "${2:-}" $((first_reserved_port - 1))
      nodes=$2
      ;;
    --cpus)
      require_number "$1" "${2:-}" 1024
      cpus=$2
      ;;
    --timeout)
      require_number "$1" "${2:-}" 100000
      timeout=$2
      ;;
    --keep-logs)
      keep_logs=${2:-}
      [[ -n $keep_logs ]] || wrong_usage "--keep-logs wants a folder"
      ;;
    *) wrong_usage "unknown argument '$1'" ;;
  esac
  shift 2
done
[[ ${1:-} == -- ]] && shift
(($# > 0)) || wrong_usage "which command? Give it behind two dashes"

PATH=$PATH:/usr/sbin:/sbin  # Debian installs the daemons there
require_programs
clear_environment
trap finish EXIT
trap 'exit 143' TERM INT HUP
start_cluster
prepare_open_mpi
run_command "$@"
