#!/bin/sh
# Runs the tests of the Python package with the programs of a build: run.sh BUILD. Exit code 77: skipped, with a reason.
# The tests of PyTorch, Keras and pandas need SYNCOPATE_PEER_PYTHON, a Python with these packages.
set -eu
SYNCOPATE_HOME=$1
PYTHONPATH=$(cd "$(dirname "$0")/../src" && pwd)
export SYNCOPATE_HOME PYTHONPATH PYTHONDONTWRITEBYTECODE=1
tests=$(dirname "$0")
for python in ${SYNCOPATE_PEER_PYTHON:+"$SYNCOPATE_PEER_PYTHON"} python3 /usr/bin/python3; do
  if "$python" -c 'import numpy, pytest' 2>/dev/null; then
    exec "$python" -m pytest -q -rs -p no:cacheprovider "$tests"
  fi
done
echo "skipped: no Python here has numpy and pytest"
exit 77
