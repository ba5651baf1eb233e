#include "models/backend/cuda_module.h"

#include <dlfcn.h>

#include <string_view>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// Grows with every change of what both sides see: backend.h, model.h and what they include.
constexpr int kInterface = 3;

std::string why_not_opened(const std::string& said) {
  const std::string file = kCudaModuleFile;
  if (said.starts_with(file + ":") && said.find("No such file") != std::string::npos) {
    return "this build has no CUDA module (" + file +
           "), or it does not lie beside the program; build where CUDA 13, cuDNN 9 and NCCL are, "
           "or "
           "choose --devices cpu";
  }
  return "the CUDA module cannot be loaded: " + said +
         "; install that library, or put its folder into LD_LIBRARY_PATH";
}

}  // namespace

std::string cuda_module_build() {
  return "interface " + std::to_string(kInterface) + " of " SYNCOPATE_MODULE_BUILD;
}

const CudaModule& load_cuda_module() {
  // Never closed: its threads and handles live as long as the process. Opened again it is the same.
  void* const module = dlopen(kCudaModuleFile, RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr) throw UnavailableError(why_not_opened(dlerror()));
  auto* const entry = reinterpret_cast<CudaModuleEntry*>(dlsym(module, kCudaModuleSymbol));
  const std::string build = cuda_module_build();
  const CudaModule* const loaded = entry == nullptr ? nullptr : entry(build.c_str());
  if (loaded == nullptr) {
    throw UnavailableError(std::string(kCudaModuleFile) +
                           " belongs to another build than this program (" + build +
                           "); build both together");
  }
  return *loaded;
}

}  // namespace syncopate
