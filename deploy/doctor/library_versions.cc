#include "deploy/doctor/library_versions.h"

#include <zlib.h>
#include <zstd.h>

#include "models/backend/cuda_module.h"
#include "models/base/errors.h"
#include "strategies/collective/mpi_session.h"

namespace syncopate {

std::vector<LibraryVersion> library_versions() {
  std::vector<LibraryVersion> versions = cpu_library_versions();
  versions.push_back({"zlib", ZLIB_VERSION, zlibVersion()});
  versions.push_back({"zstd", ZSTD_VERSION_STRING, ZSTD_versionString()});
  try {
    for (const LibraryVersion& library : load_cuda_module().library_versions()) {
      versions.push_back(library);
    }
  } catch (const UnavailableError&) {
    versions.push_back({"CUDA", "none", "none"});  // the command `info` prints the reason
  }
  // The MPI library's version is known only after the library has been loaded.
  const std::string mpi = mpi_library();
  const std::string shown = mpi.empty() ? "none: --collective mpi needs libopenmpi-dev" : mpi;
  versions.push_back({"MPI", shown, shown});
  return versions;
}

}  // namespace syncopate
