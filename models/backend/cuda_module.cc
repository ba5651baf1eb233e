#include "models/backend/cuda_module.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// The version of the CUDA module's interface, incremented with every change of the headers that the
// program and the module share: backend.h, model.h and their includes.
constexpr int kInterface = 5;

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

// Returns whether a device of this compute capability, times 10, runs the code for an architecture
// as CMAKE_CUDA_ARCHITECTURES names it: "80-real" is machine code, which runs on the same major
// version from the minor one on; "90a-real" is machine code for one compute capability;
// "90-virtual" is code that the driver compiles; "90" is both. Source: CUDA C++ Programming Guide,
// "Compute Capabilities".
bool runs_on(int device, const std::string& architecture) {
  int number = 0;
  const char* const end = architecture.data() + architecture.size();
  const auto [rest, error] = std::from_chars(architecture.data(), end, number);
  if (error != std::errc()) return true;  // "native" or "all": the build knew
  const std::string_view suffix(rest, end);
  if (!suffix.empty() && suffix.front() != '-') return device == number;
  return device >= number && (suffix != "-real" || device / 10 == number / 10);
}

// The least compute capability that CUDA 13 compiles for, and the least with bf16, times 10.
constexpr int kLeast = 75;
constexpr int kLeastWithBf16 = 80;

}  // namespace

std::string why_unusable(const CudaDevice& device, Precision precision,
                         std::span<const std::string> architectures) {
  const int found = 10 * device.major + device.minor;
  const std::string what =
      fmt::format("{} has compute capability {}.{}", device.name, device.major, device.minor);
  if (found < kLeast) {
    return fmt::format(
        "{}, and CUDA 13 has no code for GPUs below 7.5, such as V100 and P100; choose --devices "
        "cpu, or a newer GPU",
        what);
  }
  const bool runs = std::ranges::any_of(
      architectures, [&](const std::string& architecture) { return runs_on(found, architecture); });
  if (!runs) {
    return fmt::format(
        "{}, and this build has code for {}; configure with -DCMAKE_CUDA_ARCHITECTURES={}, and "
        "build again",
        what, fmt::join(architectures, ", "), found);
  }
  if (precision == Precision::kBf16 && found < kLeastWithBf16) {
    return what + ", and bf16 needs 8.0; choose --precision fp16 or f32";
  }
  return "";
}

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
