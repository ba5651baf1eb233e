#include "tests/models/backend/cuda/device_under_test.h"
#include "tests/models/backend/cuda/emulated_operations.h"

namespace syncopate::cuda {

PlanOperations operations_under_test() {
  return [](cudaStream_t stream) { return make_emulated_operations(stream); };
}

// Emulated sums have up to some 5,000 terms, which are added in another order than the
// interpreter's.
double f32_tolerance() { return 1e-5; }

std::optional<std::string> why_no_device() { return std::nullopt; }

}  // namespace syncopate::cuda
