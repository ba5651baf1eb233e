// Measures how long work takes on a device, by the device's own clock, and the highest rates that
// the device reaches: a large copy and a large matrix product. Never part of a step.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>

#include "models/backend/cuda_module.h"
#include "models/tensor/buffer.h"

namespace syncopate::cuda {

// Returns the time on the present device of one run of the work that `work` starts on `stream`. As
// in a captured step, `repeats` (>= 1) runs start as one graph, which is timed three times after
// its first start; the fastest counts. Work that takes longer than `give_up_after` when it runs
// alone is not repeated: the time of that run is returned. Waits for all runs. Throws DeviceError,
// and any exception of `work`.
std::chrono::nanoseconds time_on_device(
    cudaStream_t stream, int repeats, const std::function<void()>& work,
    std::chrono::nanoseconds give_up_after = std::chrono::nanoseconds::max());

// Fills device memory with random numbers of either sign between one half and one, stored in the
// type of `precision`. Zeros would cost less power and so be multiplied faster. Throws DeviceError.
void fill_with_random_numbers(Buffer& buffer, Precision precision);

// Measures a device's highest rates for a tenth of a second, with 2.5 GiB of device memory. Throws
// DeviceError, OutOfMemoryError.
DeviceCeilings measure_ceilings(int device, Precision precision);

}  // namespace syncopate::cuda
