#!/bin/bash
# Builds ps-lite from its public source into build/peers/ps-lite, for `syncopate-bench ps`; then run cmake again.
set -euo pipefail

revision=15b8adf17e9871ff6112c80e4b290fa38c2b4656  # March 2026

if (($# > 1)) || [[ ${1:-} == -* ]]; then
  printf '%s\n' 'usage: bench/peers/build_ps_lite.sh [SOURCE]' \
    '  SOURCE   a git repository of ps-lite; default: https://github.com/dmlc/ps-lite' \
    'Needs git, g++, protoc, and the headers of protobuf and ZeroMQ (protobuf-compiler libprotobuf-dev libzmq3-dev).'
  [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
  exit 2
fi
source=${1:-https://github.com/dmlc/ps-lite}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
for tool in git g++ protoc; do
  command -v "$tool" >/dev/null || {
    echo "build_ps_lite: $tool is missing; install git, g++, protobuf-compiler and libprotobuf-dev" >&2
    exit 1
  }
done
folder=build/peers/ps-lite
rm -rf "$folder"
mkdir -p "$folder/lib"
git clone --quiet "$source" "$folder/source"
git -C "$folder/source" checkout --quiet "$revision"
cd "$folder/source"
protoc --proto_path=src --cpp_out=src src/meta.proto
for file in src/customer.cc src/postoffice.cc src/van.cc src/meta.pb.cc; do
  g++ -std=c++17 -O3 -fPIC -w -Isrc -Iinclude -c "$file" -o "../lib/$(basename "$file").o"
done
cd ..
cp -r source/include .
ar crs lib/libpslite.a lib/*.o
rm -rf lib/*.o source
echo "build_ps_lite: $folder is ready; run cmake again"
