#!/bin/bash
# Packs a build into one file that runs on a machine without syncopate's dependencies: the programs, the CUDA module, the
# tests that need a GPU, and the Debian libraries that they use. The machine must provide the C and C++ runtime (glibc 2.36
# and GCC 12's libstdc++, or newer) and NVIDIA's libraries and driver, which `gpu_check.sh` looks for.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/bundle.sh [--build DIR] OUT.tgz

  --build DIR   the build to pack (default: build/release)

  MPI does not work from a bundle: it has libmpi, which the programs link, but neither its components nor mpirun.

  Then, anywhere: tar xzf OUT.tgz && syncopate/bin/syncopate info && syncopate/gpu_check.sh
  Exit code: 0 packed, 1 something failed, 2 wrong usage.
TEXT
}

say() { printf '%s\n' "bundle: $*"; }
wrong() {
  printf '%s\n' "bundle: $*" >&2
  exit 2
}

root=$(cd "$(dirname "$0")/.." && pwd)
build=$root/build/release file=""
while (($# > 0)); do
  case $1 in
    --build) build=${2:?--build wants a folder}; shift 2 ;;
    --help | -h) usage; exit 0 ;;
    -*) wrong "$1: no such flag; see --help" ;;
    *) [[ -z $file ]] || wrong "$1: expected one output file, found also $file"; file=$1; shift ;;
  esac
done
[[ -n $file ]] || wrong "the output file is missing; see --help"
[[ -x $build/deploy/syncopate ]] || wrong "$build: nothing is built there; cmake --build --preset release, or name another --build"
[[ -d $(dirname "$file") ]] || wrong "$file: there is no such folder"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
top=$stage/syncopate
cmake --install "$build" --prefix "$top" --strip >"$stage/log" || { cat "$stage/log" >&2; exit 1; }
cmake --install "$build" --prefix "$top" --strip --component tests >"$stage/log" || { cat "$stage/log" >&2; exit 1; }

# Libraries that every machine provides, and those of NVIDIA's driver and toolkit, are left out.
left_out='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+)|libcu(da|dart|dnn|blas).*|libnccl|libnv.*)\.so'
mapfile -t programs < <(find "$top" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF' sh {} \; -print)
mapfile -t libraries < <(ldd "${programs[@]}" | sed -n 's/.* => \(\/.*\) (0x.*/\1/p' | sort -u |
  grep -vE "/libsyncopate_cuda\.so$" | while read -r path; do
    [[ $(basename "$path") =~ $left_out ]] || printf '%s\n' "$path"
  done)
mkdir -p "$top/lib" "$top/share/doc/syncopate/libraries"  # a build without the CUDA module installs no lib
for path in "${libraries[@]}"; do
  cp --dereference "$path" "$top/lib/"
  # The licences of the libraries require that they are distributed together.
  package=$(dpkg -S "*/$(basename "$path")" 2>/dev/null | head -n 1 | cut -d: -f1) || package=""
  if [[ -f /usr/share/doc/$package/copyright ]]; then
    cp "/usr/share/doc/$package/copyright" "$top/share/doc/syncopate/libraries/$package"
  fi
done

# A program's run path does not apply to the libraries of its libraries, so a script sets LD_LIBRARY_PATH for each program.
mv "$top/bin" "$top/programs"
mkdir "$top/bin"
for program in "$top"/programs/*; do
  cat >"$top/bin/$(basename "$program")" <<'TEXT'
#!/bin/sh
# Runs the program of this name with the libraries of the bundle.
self=$(readlink -f "$0")
top=${self%/bin/*}
LD_LIBRARY_PATH=$top/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
exec "$top/programs/${self##*/}" "$@"
TEXT
  chmod +x "$top/bin/$(basename "$program")"
done
ln -s share/syncopate/deploy/gpu_check.sh "$top/gpu_check.sh"

tar --create --sort=name --owner=0 --group=0 --directory "$stage" syncopate | gzip -9n >"$file.part"
mv "$file.part" "$file"
say "$file: $(($(stat -c %s "$file") / 1024)) KiB, $(du -sk "$top" | cut -f1) KiB unpacked, ${#libraries[@]} libraries"
