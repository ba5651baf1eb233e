// How long work takes on the device that is here, by its own clock: for what is measured on purpose
// (ceilings.h, plan_choice.h), never in a step.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <functional>

namespace syncopate::cuda {

// The mean of `repeats` runs (>= 1) of what `work` starts on `stream`, one behind the other and
// started as one, as in a captured step; after as many that load what it needs. Waits for all of
// them. Throws DeviceError, also what `work` throws.
std::chrono::nanoseconds time_on_device(cudaStream_t stream, int repeats,
                                        const std::function<void()>& work);

}  // namespace syncopate::cuda
