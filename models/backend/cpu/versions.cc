#include "models/backend/cpu/versions.h"

#include <dnnl.h>

namespace syncopate {
namespace {

std::string dotted(int major, int minor, int patch) {
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

}  // namespace

std::vector<LibraryVersion> cpu_library_versions() {
  const dnnl_version_t* loaded = dnnl_version();
  return {{"oneDNN", dotted(DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH),
           dotted(loaded->major, loaded->minor, loaded->patch)}};
}

}  // namespace syncopate
