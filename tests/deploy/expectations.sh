# Sourced by the scripts of this folder that run programs and examine what these print.
# shellcheck shell=bash

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}
# expect_code CODE COMMAND...: fails if COMMAND exits with another code. Its output is in $said.
expect_code() {
  local expected=$1 code=0
  shift
  said=$("$@" 2>&1) || code=$?
  ((code == expected)) || fail "$*: exit code $code, not $expected: $said"
}
expect_output() { [[ $said == *"$1"* ]] || fail "expected '$1' in: $said"; }
