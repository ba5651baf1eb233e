#!/bin/bash
# The first hour on a borrowed GPU as four runs of gpu_check.sh, in this order, with repairs between them.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: gpu_run.sh smoke|correctness|profile|record [FLAG...]

  smoke         does it run, and how fast: a few tests, resnet50 in bf16 and fp16 alone, PyTorch's as a graph (5 minutes)
  correctness   all tests, accuracy, every strategy, compute-sanitizer
  profile       where the time of a step goes: by groups of operations, and by kernels if ncu is installed
  record        resnet50, resnet20 and mnist-cnn in turns with PyTorch

With a bundle or an installation each ends within 10 minutes. FLAGs are those of gpu_check.sh: --bundle FILE.tgz and --out DIR, and --plans FILE of the run
before if --out is another folder. Exit codes are those of gpu_check.sh, too.
TEXT
}

run=${1:-}
shift $(($# > 0))
case $run in
  smoke) set -- --only smoke --limit 300 "$@" ;;
  correctness) set -- --only tests,accuracy,strategies,sanitizer --limit 560 "$@" ;;
  profile) set -- --only profile --limit 560 "$@" ;;
  record) set -- --only speed --limit 560 "$@" ;;
  --help | -h) usage; exit 0 ;;
  *) printf '%s\n' "gpu_run: expected smoke, correctness, profile or record, found '$run'; see --help" >&2; exit 2 ;;
esac
exec "$(dirname "$(readlink -f "$0")")/gpu_check.sh" "$@"
