// The convolutions and products of a program in plain loops on the CPU, in the place of NVIDIA's
// libraries: with emulated kernels and an emulated runtime, whole programs of the CUDA backend run
// where no GPU is.
#pragma once

#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

// Work is the emulated stream's (emulated_stream.h).
std::unique_ptr<Operations> make_emulated_operations(cudaStream_t stream);

}  // namespace syncopate::cuda
