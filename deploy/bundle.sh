#!/bin/bash
# Packs what was built into one file that runs on a machine where nothing is installed: programs, CUDA module, the tests
# that need a GPU, and the libraries of Debian that they use. Not in it: the C and C++ runtime (glibc 2.36 and GCC 12's
# libstdc++ or newer are expected there) and NVIDIA's libraries and driver, which `gpu_check.sh` looks for.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/bundle.sh [--build DIR] OUT.tgz

  --build DIR   what was built (default: build/release)

  MPI does not work from a bundle: libmpi is in it, for the programs name it, but neither its components nor mpirun.

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
    *) [[ -z $file ]] || wrong "$1: one file is packed, and that is $file"; file=$1; shift ;;
  esac
done
[[ -n $file ]] || wrong "where to? see --help"
[[ -x $build/deploy/syncopate ]] || wrong "$build: nothing is built there; cmake --build --preset release, or name another --build"
[[ -d $(dirname "$file") ]] || wrong "$file: there is no such folder"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
top=$stage/syncopate
cmake --install "$build" --prefix "$top" --strip >"$stage/log" || { cat "$stage/log" >&2; exit 1; }
cmake --install "$build" --prefix "$top" --strip --component tests >"$stage/log" || { cat "$stage/log" >&2; exit 1; }

# What there is everywhere, and what belongs to NVIDIA's driver and toolkit.
left_out='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+)|libcu(da|dart|dnn|blas).*|libnccl|libnv.*)\.so'
mapfile -t programs < <(find "$top" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF' sh {} \; -print)
mapfile -t libraries < <(ldd "${programs[@]}" | sed -n 's/.* => \(\/.*\) (0x.*/\1/p' | sort -u |
  grep -vE "/libsyncopate_cuda\.so$" | while read -r path; do
    [[ $(basename "$path") =~ $left_out ]] || printf '%s\n' "$path"
  done)
mkdir -p "$top/lib" "$top/share/doc/syncopate/libraries"  # without the CUDA module nothing has made lib
for path in "${libraries[@]}"; do
  cp --dereference "$path" "$top/lib/"
  # Whoever passes libraries on passes on their licences.
  package=$(dpkg -S "*/$(basename "$path")" 2>/dev/null | head -n 1 | cut -d: -f1) || package=""
  if [[ -f /usr/share/doc/$package/copyright ]]; then
    cp "/usr/share/doc/$package/copyright" "$top/share/doc/syncopate/libraries/$package"
  fi
done

# A program's own run path does not reach the libraries of its libraries: a script in front of each says where they are.
mv "$top/bin" "$top/programs"
mkdir "$top/bin"
for program in "$top"/programs/*; do
  cat >"$top/bin/$(basename "$program")" <<'TEXT'
#!/bin/sh
# The program of this name, with the libraries that lie beside it.
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
