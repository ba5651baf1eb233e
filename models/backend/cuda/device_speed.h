// Measures how long work takes on a device, by the device's own clock. Also measures the highest
// rates of the device, with a large copy and a large matrix product. Never part of a step.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>

#include "models/backend/cuda_module.h"
#include "models/tensor/buffer.h"

namespace syncopate::cuda {

// Returns the time that the calling thread's device takes for one run of the work that work()
// starts on `stream`. As in a captured step, the work is started as one CUDA graph, which contains
// `repeats` (>= 1) runs. The graph is started once without timing and then timed three times; the
// fastest time counts. If a single run takes longer than `give_up_after`, the work is not repeated,
// and the time of this run is returned. Waits for all runs. Throws DeviceError, and any exception
// of work().
std::chrono::nanoseconds time_on_device(
    cudaStream_t stream, int repeats, const std::function<void()>& work,
    std::chrono::nanoseconds give_up_after = std::chrono::nanoseconds::max());

// Fills device memory with random numbers in [0.5, 1] of either sign, in the type of `precision`.
// Zeros would need less power, so the device would multiply them faster. Throws DeviceError.
void fill_with_random_numbers(Buffer& buffer, Precision precision);

// Measures the highest rates of a device. Takes 0.1 s and 2.5 GiB of device memory. Throws
// DeviceError, OutOfMemoryError.
DeviceCeilings measure_ceilings(int device, Precision precision);

}  // namespace syncopate::cuda
