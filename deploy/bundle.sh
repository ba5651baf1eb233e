#!/bin/bash
# Packs a build into one file that runs on every x86-64 Linux without syncopate's dependencies and without root: the programs,
# their modules, the tests that need a GPU, and the Debian libraries that they use, the C library and its loader included.
# NVIDIA's libraries and driver and Open MPI are taken from the machine, if it has them; `gpu_check.sh` looks for the former.
# The tests that need a GPU use the machine's C library, which must not be older than Debian 12's (glibc 2.36).
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/bundle.sh [--build DIR] [--no-tests] OUT.tgz
       deploy/bundle.sh [--build DIR] --wheel OUTDIR

  --build DIR   the build to pack (default: build/release)
  --no-tests    without the tests that need a GPU and gpu_check.sh, which runs them
  --wheel       a wheel of the Python package (deploy/python) with the programs and without tests, for pip install

  --collective mpi uses the machine's Open MPI (libmpi.so.40) and its mpirun.

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
build=$root/build/release file="" tests=true wheel=""
while (($# > 0)); do
  case $1 in
    --build) build=${2:?--build wants a folder}; shift 2 ;;
    --no-tests) tests=false; shift ;;
    --wheel) wheel=${2:?--wheel wants a folder}; tests=false; shift 2 ;;
    --help | -h) usage; exit 0 ;;
    -*) wrong "$1: no such flag; see --help" ;;
    *) [[ -z $file ]] || wrong "$1: expected one output file, found also $file"; file=$1; shift ;;
  esac
done
[[ -n $file || -n $wheel ]] || wrong "the output file is missing; see --help"
[[ -z $file || -z $wheel ]] || wrong "$file: with --wheel, expected no output file"
[[ -x $build/deploy/syncopate ]] || wrong "$build: nothing is built there; cmake --build --preset release, or name another --build"
[[ -d $(dirname "$file") ]] || wrong "$file: there is no such folder"
[[ -z $wheel || -d $wheel ]] || wrong "$wheel: there is no such folder"

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
top=$stage/syncopate
cmake --install "$build" --prefix "$top" --strip >"$stage/log" || { cat "$stage/log" >&2; exit 1; }
if $tests; then
  cmake --install "$build" --prefix "$top" --strip --component tests >"$stage/log" || { cat "$stage/log" >&2; exit 1; }
fi

# Left out are the libraries of NVIDIA's driver and toolkit, and what the MPI module links. The C library and the
# compiler's are in a folder of their own, because they are used only where the machine's are older.
left_out='^lib(cu(da|dart|dnn|blas).*|nccl|nv.*)\.so'
c_library='^(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+))\.so'
mapfile -t programs < <(find "$top" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF' sh {} \; -print | grep -v '/libsyncopate_mpi\.so$')
mapfile -t libraries < <(ldd "${programs[@]}" | sed -n 's/.* => \(\/.*\) (0x.*/\1/p' | sort -u |
  grep -vE "/libsyncopate_(cuda|mpi)\.so$" | while read -r path; do
    [[ $(basename "$path") =~ $left_out|$c_library ]] || printf '%s\n' "$path"
  done)
loader=$(ldd "${programs[0]}" | sed -n 's/^\s*\(\/[^ ]*ld-linux[^ ]*\) (0x.*/\1/p')
c_folder=$(dirname "$(ldd "${programs[0]}" | sed -n 's/.*libc\.so\.6 => \([^ ]*\) .*/\1/p')")
mkdir "$top/glibc"
# libdl, librt, libpthread and libutil are empty since glibc 2.34, but older libraries of the machine name them.
for name in libc.so.6 libm.so.6 libmvec.so.1 libresolv.so.2 libdl.so.2 librt.so.1 libpthread.so.0 libutil.so.1 \
  libnss_files.so.2 libnss_dns.so.2 libstdc++.so.6 libgcc_s.so.1; do
  if [[ -e $c_folder/$name ]]; then cp --dereference "$c_folder/$name" "$top/glibc/"; fi
done
cp --dereference "$loader" "$top/glibc/ld-linux-x86-64.so.2"
glibc=$(ldd --version | sed -n '1s/.* //p')
mkdir -p "$top/lib" "$top/share/doc/syncopate/libraries"  # a build without the CUDA module installs no lib
for path in "${libraries[@]}"; do
  cp --dereference "$path" "$top/lib/"
  # The licences of the libraries require that they are distributed together.
  package=$(dpkg -S "*/$(basename "$path")" 2>/dev/null | head -n 1 | cut -d: -f1) || package=""
  if [[ -f /usr/share/doc/$package/copyright ]]; then
    cp "/usr/share/doc/$package/copyright" "$top/share/doc/syncopate/libraries/$package"
  fi
done

for package in libc6 libstdc++6; do
  if [[ -f /usr/share/doc/$package/copyright ]]; then
    cp --dereference "/usr/share/doc/$package/copyright" "$top/share/doc/syncopate/libraries/$package"
  fi
done

# A program's run path does not apply to the libraries of its libraries, so a script calls the loader with the folders: the
# machine's loader, or that of the bundle where the machine's C library is older than this one. LD_LIBRARY_PATH would also
# apply to other programs that the program starts.
mv "$top/bin" "$top/programs"
mkdir "$top/bin"
for program in "$top"/programs/*; do
  cat >"$top/bin/$(basename "$program")" <<TEXT
#!/bin/sh
# Runs the program of this name with the libraries of the bundle.
self=\$(readlink -f "\$0")
top=\${self%/bin/*}
folders=\$top/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
loader=/lib64/ld-linux-x86-64.so.2
found=\$(getconf GNU_LIBC_VERSION 2>/dev/null) || found=
older=\$(printf '%s\n' "\${found#glibc }" $glibc | sort -V | head -n 1)
if [ ! -e "\$loader" ] || [ "\$older" != $glibc ]; then
  loader=\$top/glibc/ld-linux-x86-64.so.2
  folders=\$top/glibc:\$folders
fi
exec "\$loader" --library-path "\$folders" "\$top/programs/\${self##*/}" "\$@"
TEXT
  chmod +x "$top/bin/$(basename "$program")"
done
if $tests; then
  ln -s share/syncopate/deploy/gpu_check.sh share/syncopate/deploy/gpu_run.sh "$top/"
else
  rm "$top"/share/syncopate/deploy/gpu_{check,run}.sh
fi

contents="$(du -sk "$top" | cut -f1) KiB unpacked, ${#libraries[@]} libraries, glibc $glibc"
if [[ -n $wheel ]]; then
  file=$(python3 "$root/deploy/python/pack_wheel.py" "$top" "$wheel")
else
  tar --create --sort=name --owner=0 --group=0 --directory "$stage" syncopate | gzip -9n >"$file.part"
  mv "$file.part" "$file"
fi
say "$file: $(($(stat -c %s "$file") / 1024)) KiB, $contents"
