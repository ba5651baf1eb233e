// The device on which the CUDA backend is held against the interpreter: a GPU, or the emulated one.
#pragma once

#include <optional>
#include <string>

#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

PlanOperations operations_under_test();
// Of sums in f32, relative L2.
double f32_tolerance();
// None: it is there.
std::optional<std::string> why_no_device();

}  // namespace syncopate::cuda
