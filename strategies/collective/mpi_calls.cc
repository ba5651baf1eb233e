#include "strategies/collective/mpi_calls.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "models/base/errors.h"

namespace syncopate {
namespace {

const MpiCalls* load() {
  // Open MPI loads its components at run time, which look for the symbols of its libraries.
  void* const module = dlopen(kMpiModuleFile, RTLD_NOW | RTLD_GLOBAL);
  if (module == nullptr) {
    const std::string error = dlerror();
    if (error.starts_with(fmt::format("{}:", kMpiModuleFile)) &&
        error.find("No such file") != std::string::npos) {
      throw UnavailableError(fmt::format(
          "--collective mpi: this build has no MPI module ({}); build where MPI is installed "
          "(libopenmpi-dev), or choose --collective ring",
          kMpiModuleFile));
    }
    throw UnavailableError(fmt::format(
        "--collective mpi: MPI cannot be loaded: {}; load the module of the MPI that this program "
        "was built with, add its folder to LD_LIBRARY_PATH, or choose --collective ring",
        error));
  }
  auto* const entry = reinterpret_cast<MpiModuleEntry*>(dlsym(module, kMpiModuleSymbol));
  if (entry == nullptr) {
    throw UnavailableError(fmt::format(
        "--collective mpi: {} belongs to another version of this program; build both together",
        kMpiModuleFile));
  }
  return entry();
}

}  // namespace

const MpiCalls& mpi_calls() {
  static const MpiCalls* const calls = load();
  return *calls;
}

}  // namespace syncopate
