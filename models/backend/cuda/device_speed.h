// Measures how long work takes on a device, by the device's own clock, and the highest rates that
// the device reaches: a large copy and a large matrix product. Never part of a step.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>

#include "models/backend/cuda_module.h"

namespace syncopate::cuda {

// Returns the mean time on the present device of `repeats` runs (>= 1) of the work that `work`
// starts on `stream`. The runs follow each other and start as one graph, as in a captured step; the
// same number of untimed runs precedes them, so that kernels are loaded. Waits for all runs. Throws
// DeviceError, and any exception of `work`.
std::chrono::nanoseconds time_on_device(cudaStream_t stream, int repeats,
                                        const std::function<void()>& work);

// Measures a device's highest rates for a tenth of a second, with 2.5 GiB of device memory. Throws
// DeviceError, OutOfMemoryError.
DeviceCeilings measure_ceilings(int device, Precision precision);

}  // namespace syncopate::cuda
