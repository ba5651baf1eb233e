#include "models/backend/cuda_module.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// The version of the CUDA module's interface, incremented with every change of the headers that the
// program and the module share: backend.h, model.h and their includes.
constexpr int kInterface = 4;

// Returns the message for an error of dlopen() of the CUDA module.
std::string describe_load_error(const std::string& error) {
  const std::string file = kCudaModuleFile;
  if (error.starts_with(file + ":") && error.find("No such file") != std::string::npos) {
    return fmt::format(
        "this build has no CUDA module ({}), or the module is not in the folder of the program; "
        "build where CUDA 13, cuDNN 9 and NCCL are installed, or choose --devices cpu",
        file);
  }
  return fmt::format(
      "the CUDA module cannot be loaded: {}; install that library, or add its folder to "
      "LD_LIBRARY_PATH",
      error);
}

}  // namespace

std::string cuda_module_build() {
  return fmt::format("interface {} of {}", kInterface, SYNCOPATE_MODULE_BUILD);
}

const CudaModule& load_cuda_module() {
  // The CUDA module is never closed, because its threads and handles live as long as the process.
  // Another call opens the same module again.
  void* const module = dlopen(kCudaModuleFile, RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw UnavailableError(describe_load_error(dlerror()));
  auto* const entry = reinterpret_cast<CudaModuleEntry*>(dlsym(module, kCudaModuleSymbol));
  const std::string build = cuda_module_build();
  const CudaModule* const loaded = entry == nullptr ? nullptr : entry(build.c_str());
  if (loaded == nullptr) {
    throw UnavailableError(
        fmt::format("{} does not belong to the build of this program ({}); build both together",
                    kCudaModuleFile, build));
  }
  return *loaded;
}

}  // namespace syncopate
