#include "deploy/library_versions.h"

#include <zlib.h>
#include <zstd.h>

namespace syncopate {

std::vector<LibraryVersion> library_versions() {
  std::vector<LibraryVersion> versions = cpu_library_versions();
  versions.push_back({"zlib", ZLIB_VERSION, zlibVersion()});
  versions.push_back({"zstd", ZSTD_VERSION_STRING, ZSTD_versionString()});
  return versions;
}

}  // namespace syncopate
