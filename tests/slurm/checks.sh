# Sourced by the scripts of this folder: a scratch folder, comparisons that print what was found, and waiting
# with a deadline.
# shellcheck shell=bash

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  printf '%s\n' "FAILED: $*" >&2
  exit 1
}

skip() {
  printf '%s\n' "skipped: $*"
  exit 77
}

expect_equal() { [[ $1 == "$2" ]] || fail "expected '$2', found '$1'"; }

# expect_exit CODE COMMAND...: fails, and prints the command's output, if it does not exit with CODE.
expect_exit() {
  local expected=$1 code=0 said
  shift
  said=$("$@" 2>&1 </dev/null) || code=$?
  ((code == expected)) || fail "expected exit code $expected, found $code from: $* -- $said"
}

# wait_until SECONDS COMMAND...: repeats COMMAND until it succeeds; false when it has not succeeded in that time.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

# is_gone CONF: succeeds if the cluster with this slurm.conf has left neither its folder nor processes.
is_gone() { [[ ! -e ${1%/*} && -z $(processes_with "$1") ]]; }
expect_gone() {
  [[ -n $1 ]] || fail "the cluster did not say where it was"
  [[ ! -e ${1%/*} ]] || fail "left behind: $(ls -d "${1%/*}"/*)"
  [[ -z $(processes_with "$1") ]] || fail "processes are left: $(processes_with "$1")"
}
processes_with() {
  grep -lazxF "SLURM_CONF=$1" /proc/[0-9]*/environ 2>/dev/null || true
  find /proc/[0-9]*/fd -lname "${1%/*}/*" 2>/dev/null || true
}

need_slurm() {
  local program
  for program in srun slurmctld munged; do
    PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null ||
      skip "there is no $program here; install slurm-wlm and munge"
  done
}

# in_cluster NODES SCRIPT TEST: runs a test of the script on a private Slurm cluster.
in_cluster() {
  need_slurm
  PATH=$SYNCOPATE_PROGRAMS:$PATH
  deploy/slurm/local_cluster.sh --nodes "$1" --timeout 270 -- bash "$2" --inside "${@:3}"
  exit
}

# Prints the process id of a task, given its rank in the step.
process_of() {
  local environ
  for environ in /proc/[0-9]*/environ; do
    if grep -qzxF "SLURM_PROCID=$1" "$environ" 2>/dev/null && grep -qzxF "SLURM_CONF=$SLURM_CONF" "$environ" &&
      [[ $(tr '\0' ' ' <"${environ%environ}cmdline") == *syncopate\ train* ]]; then
      echo "${environ//[^0-9]/}"
    fi
  done
}

run_named_test() {
  [[ $(type -t "${1:-}") == function ]] || fail "no such test: '${1:-}'"
  "$1"
}
