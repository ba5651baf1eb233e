// Which backend computes on a device.
#include "models/backend/backend.h"
#include "models/backend/cuda_module.h"
#include "models/base/errors.h"

namespace syncopate {

std::string_view name(Precision precision) noexcept {
  switch (precision) {
    case Precision::kF32:
      return "f32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kF16:
      return "fp16";
  }
  return "unknown";
}

std::unique_ptr<Backend> make_backend(const BackendOptions& options) {
  if (options.device.kind == DeviceKind::kCuda) return load_cuda_module().make_backend(options);
  if (options.precision != Precision::kF32) {
    throw UnavailableError("--precision " + std::string(name(options.precision)) +
                           ": the CPU computes in f32; choose --precision f32 or --devices cuda");
  }
  return make_cpu_backend(options.lanes);
}

}  // namespace syncopate
