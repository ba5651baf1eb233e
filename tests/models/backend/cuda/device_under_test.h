// Declares the device on which the CUDA backend is compared with the interpreter: a GPU, or the
// emulated one.
#pragma once

#include <optional>
#include <string>

#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

PlanOperations operations_under_test();
// Returns the tolerance for f32 sums on this device, as relative L2 distance.
double f32_tolerance();
// Returns why the device is missing, or no value if it is present.
std::optional<std::string> why_no_device();

}  // namespace syncopate::cuda
