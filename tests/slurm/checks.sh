# What the scripts of this folder share: a scratch folder, comparisons that say what was found, and waiting
# with a deadline. Sourced.
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

# expect_exit CODE COMMAND...: what it says is shown when it is wrong.
expect_exit() {
  local expected=$1 code=0 said
  shift
  said=$("$@" 2>&1 </dev/null) || code=$?
  ((code == expected)) || fail "expected exit code $expected, found $code from: $* -- $said"
}

# wait_until SECONDS COMMAND...: until the command is true; false when it has not been in that time.
wait_until() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < deadline)) || return 1
    sleep 0.05
  done
}

# Of a cluster that had this slurm.conf: processes that speak to it, and its folder.
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

# in_cluster NODES SCRIPT TEST: the script's test on a Slurm of its own.
in_cluster() {
  need_slurm
  PATH=$SYNCOPATE_PROGRAMS:$PATH
  deploy/slurm/local_cluster.sh --nodes "$1" --timeout 270 -- bash "$2" --inside "${@:3}"
  exit
}

run_named_test() {
  [[ $(type -t "${1:-}") == function ]] || fail "no such test: '${1:-}'"
  "$1"
}
