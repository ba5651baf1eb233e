// Measures how long work takes on the present device, by the device's own clock. It serves explicit
// measurements (ceilings.h, plan_choice.h) and is never part of a step.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>

namespace syncopate::cuda {

// Returns the mean time of `repeats` runs (>= 1) of the work that `work` starts on `stream`. The
// runs follow each other and start as one graph, as in a captured step; the same number of untimed
// runs precedes them, so that kernels are loaded. Waits for all runs. Throws DeviceError, and any
// exception of `work`.
std::chrono::nanoseconds time_on_device(cudaStream_t stream, int repeats,
                                        const std::function<void()>& work);

}  // namespace syncopate::cuda
