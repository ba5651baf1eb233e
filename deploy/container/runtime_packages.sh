#!/bin/bash
# Prints the Debian packages, one per line, of the libraries that the given programs were linked with. The runtime images
# in the Dockerfile of this folder install them.
set -euo pipefail
if (($# == 0)); then
  echo "usage: deploy/container/runtime_packages.sh PROGRAM..." >&2
  exit 2
fi
owner_of() {
  # Some packages list their files under /lib, others under /usr/lib; both are the same folder.
  dpkg-query --search "$1" 2>/dev/null || dpkg-query --search "$(realpath "$1")" 2>/dev/null ||
    echo "runtime_packages: no package has $1" >&2
}
ldd "$@" | awk '$2 == "=>" && $3 ~ "^/" { print $3 }' | sort -u |
  while read -r library; do owner_of "$library"; done | cut -d: -f1 | sort -u
