#!/bin/bash
# Sets up an empty Debian 12 machine and compares strategies on four clusters: installs missing packages, builds, trains.
# With `test` it runs the tests instead of the comparison. A second run skips the steps that are done.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/quickstart.sh [WORD]

  (none)      install missing packages, build, and show which strategy is best on which cluster
  test        install missing packages, build, run the tests, and fuzz what comes from outside for a minute
  packages    install missing packages, no more
  --help      this text

Packages are listed in deploy/dependencies.txt. As root they are installed directly, else with sudo.
The program is built into build/release; runs are kept in build/quickstart.
TEXT
}

say() { printf '%s\n' "quickstart: $*"; }
fail() {
  printf '%s\n' "quickstart: $*" >&2
  exit 1
}

kinds=build  # kinds of packages to install, as in dependencies.txt; separated by |

# Prints a line "package minimum" for each needed package.
needed_packages() { awk -v kinds="$kinds" '$1 ~ "^(" kinds ")$" { print $2, $3 }' deploy/dependencies.txt; }

# Prints the needed packages that are absent or too old, one per line.
missing_packages() {
  local package minimum version
  while read -r package minimum; do
    version=$(dpkg-query --show --showformat='${db:Status-Status} ${Version}\n' "$package" 2>/dev/null |
      awk '$1 == "installed" { print $2; exit }') || version=""
    version=${version#*:}  # the minimum versions in the list have no Debian epoch
    if [[ -z $version ]]; then
      echo "$package"
    elif [[ $minimum != any ]] && ! dpkg --compare-versions "$version" ge "$minimum"; then
      echo "$package"
    fi
  done < <(needed_packages)
}

install_packages() {
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    local tool
    for tool in c++ cmake ninja pkg-config; do
      command -v "$tool" >/dev/null ||
        fail "$tool is missing and this is not a Debian system; install what these Debian packages" \
          "contain: $(needed_packages | awk '{ printf "%s%s", sep, $1; sep = " " }')"
    done
    say "not a Debian system: going on with the tools and libraries that are here"
    return
  fi
  local -a missing as_root=()
  mapfile -t missing < <(missing_packages)
  if ((${#missing[@]} == 0)); then
    say "all packages are installed"
    return
  fi
  local -a install=(apt-get install --yes --no-install-recommends "${missing[@]}")
  if (($(id -u) != 0)); then
    command -v sudo >/dev/null ||
      fail "packages are missing and there is neither root nor sudo; as root, run:" \
        "apt-get update && ${install[*]}"
    as_root=(sudo)
  fi
  say "about to install ${#missing[@]} packages: ${missing[*]}"
  say "with: ${as_root[*]:+${as_root[*]} }apt-get update && ${as_root[*]:+${as_root[*]} }${install[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update --quiet
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}"
}

# build [TARGET...]: builds these targets, or everything.
build() {
  local jobs
  jobs=$(deploy/build_jobs.sh)
  say "building into build/release with $jobs jobs"
  cmake --preset release
  cmake --build --preset release --parallel "$jobs" ${1:+--target "$@"}
}

run_tests() {
  say "running the tests (without the soak: ctest --preset release -L soak)"
  ctest --preset release --parallel "$(nproc)" --label-exclude soak
}

# Fuzzes what comes from the network and from files, one minute in all. libFuzzer requires clang.
run_fuzzers() {
  if ! command -v clang++ >/dev/null; then
    say "not fuzzing: there is no clang++"
    return
  fi
  say "fuzzing what comes from the network and from files for a minute, in build/fuzz"
  cmake --preset fuzz >/dev/null
  cmake --build --preset fuzz --target fuzzers
  ctest --preset fuzz --label-regex '^fuzz$'
}

compare() {
  local -a command=(build/release/bench/syncopate-bench compare --clusters "equal,jitter,slow-worker,slow-link"
    --model mlp --workers 8 --epochs 1 --target-accuracy 0.95 --report "build/quickstart/$(date +%Y%m%d-%H%M%S)"
    -- --optimizer sgd --learning-rate 0.1)
  say "${command[*]}"
  "${command[@]}"
}

main() {
  local word=${1:-compare}
  if (($# > 1)); then
    printf '%s\n' "quickstart: one word at most, got $#; see deploy/quickstart.sh --help" >&2
    exit 2
  fi
  case $word in
    compare | test | packages) ;;
    --help | -h) usage && exit 0 ;;
    *)
      printf '%s\n' "quickstart: unknown word '$word'; expected test, packages, --help or nothing" >&2
      exit 2
      ;;
  esac
  cd "$(dirname "${BASH_SOURCE[0]}")/.."
  [[ $word == test ]] && kinds='build|test'
  if [[ $word == compare ]]; then
    say "packages, build and comparison take 4 to 9 minutes on two cores, and 300 MB of disk for the" \
      "build beside the packages"
  fi
  install_packages
  [[ $word == packages ]] && exit 0
  if [[ $word == test ]]; then
    build
    run_tests
    run_fuzzers
  else
    build syncopate syncopate-bench
    if [[ -e build/release/deploy/libsyncopate_cuda.so ]]; then
      say "built for CPUs and NVIDIA GPUs: --devices cuda uses them, and syncopate info lists them"
    else
      say "built for CPUs; the line 'CUDA module: no' above says what a build for NVIDIA GPUs lacks"
    fi
    compare
  fi
  say "took $((SECONDS / 60)) min $((SECONDS % 60)) s"
}

main "$@"
