#!/bin/bash
# Checks a change before and after a push: layout, clang-tidy, build, tests. Stops at the first stage that fails,
# names it, and prints the duration of every stage.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/check.sh [--all] [--base REVISION] [--sanitize]

  stages: format, configure, tidy, build, headers (each compiles alone), test

  --all             clang-tidy on every file, not only on what changed
  --base REVISION   what "changed" is measured against (default: where this branch left origin/main;
                    without a remote, the commit before the last); uncommitted changes always count
  --sanitize        also build and test with AddressSanitizer and UndefinedBehaviorSanitizer, then the tests
                    labelled `tsan` with ThreadSanitizer
  --help            this text
TEXT
}

say() { printf '%s\n' "check: $*"; }

# Prints the tracked and the new C++ files, without deleted ones that git still lists.
sources() {
  git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' '*.cu' | while IFS= read -r file; do
    if [[ -e $file ]]; then echo "$file"; fi
  done
}

base_revision() {
  if [[ -n $base ]]; then
    git rev-parse --verify --quiet "$base^{commit}"
  elif git rev-parse --verify --quiet origin/main >/dev/null &&
    [[ $(git merge-base HEAD origin/main) != $(git rev-parse HEAD) ]]; then
    git merge-base HEAD origin/main
  else
    git rev-parse --verify --quiet HEAD~1 || git hash-object -t tree /dev/null  # compares the first commit with an empty tree
  fi
}

changed() {
  local revision
  revision=$(base_revision) || return 1
  { git diff --name-only --diff-filter=d "$revision" -- && git ls-files --others --exclude-standard; } |
    sort -u | grep -E '\.(h|cc)$' || true
}

format() {
  # Other major versions of clang-format produce another layout.
  clang-format --version | grep -q 'version 14\.' ||
    { say "clang-format 14 is wanted, found: $(clang-format --version)" && return 1; }
  sources | xargs --no-run-if-empty clang-format --dry-run -Werror
}

configure() { cmake --preset release >/dev/null; }

# Runs clang-tidy on a header through the translation unit that tests/architecture generates for it.
tidy() {
  local files units="" file unit
  if $all; then files=$(sources); else files=$(changed); fi
  for file in $files; do
    unit=$file
    if [[ $file == *.h ]]; then unit=build/release/tests/architecture/headers/$file.cc; fi
    if grep -q "\"file\": \"$PWD/$unit\"" build/release/compile_commands.json; then units+="$unit"$'\n'; fi
  done
  say "clang-tidy on $(printf '%s' "$units" | wc -l) files"
  printf '%s' "$units" |
    xargs --no-run-if-empty --max-args=1 --max-procs="$(deploy/build_jobs.sh)" \
      clang-tidy -p build/release --quiet 2> >(grep -v 'warnings\? generated\|^Suppressed\|^Use -header' >&2)
}

# build PRESET [TARGET...]: builds these targets, or everything.
build() {
  local preset=$1
  shift
  cmake --build --preset "$preset" --parallel "$(deploy/build_jobs.sh)" ${1:+--target "$@"}
}

run_tests() {
  local preset=$1
  shift
  ctest --preset "$preset" --parallel "$(nproc)" "$@"
}

address_sanitizer() { cmake --preset asan >/dev/null && build asan && run_tests asan; }

# OpenMP runs with one thread, because ThreadSanitizer reports false races in parallel regions.
thread_sanitizer() {
  cmake --preset tsan >/dev/null && build tsan tsan_tests && OMP_NUM_THREADS=1 run_tests tsan --label-regex '^tsan$'
}

stage() {
  local start=$SECONDS
  current=$1
  shift
  say "$current ..."
  "$@"  # must not be part of a condition, in which bash ignores errexit
  say "$current: $((SECONDS - start)) s"
  current=""
}

report_failure() {
  local code=$?
  if ((code != 0)) && [[ -n $current ]]; then say "$current FAILED" >&2; fi
  exit "$code"
}

current=""
all=false
sanitize=false
base=""
while (($# > 0)); do
  case $1 in
    --all) all=true ;;
    --sanitize) sanitize=true ;;
    --base)
      base=${2:-}
      [[ -n $base ]] || { say "--base wants a revision" >&2 && exit 2; }
      shift
      ;;
    --help | -h) usage && exit 0 ;;
    *)
      say "unknown argument '$1'; see deploy/check.sh --help" >&2
      exit 2
      ;;
  esac
  shift
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for tool in git clang-format clang-tidy cmake; do
  if ! command -v "$tool" >/dev/null; then
    say "$tool is missing; install: $(awk '$1 == "dev" || $1 == "build" || $1 == "test" { printf "%s ", $2 }' deploy/dependencies.txt)" >&2
    exit 1
  fi
done

trap report_failure EXIT
stage format format
stage configure configure
stage tidy tidy
stage build build release
stage headers build release header_self_containment
stage test run_tests release
if $sanitize; then
  stage "address and undefined-behaviour sanitizer" address_sanitizer
  stage "thread sanitizer" thread_sanitizer
fi
say "all passed"
