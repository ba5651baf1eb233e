// The convolutions and products of a program in plain loops on the CPU, in the place of NVIDIA's
// libraries: with emulated kernels and an emulated runtime, whole programs of the CUDA backend run
// where no GPU is.
#pragma once

#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

// From what a convolution sums its output for a batch norm: from what is stored of it, as cuDNN's
// graph says, or from what is about to be rounded, as a kernel has it at hand. NVIDIA does not say
// which of them its engines do. Or the library has no such convolution.
enum class EmulatedSums : std::uint8_t { kOfStored, kOfUnrounded, kNone };

// Work is the emulated stream's (emulated_stream.h). Convolutions that sum are there for what cuDNN
// has them for on an H200: f16, channels in packs of eight.
std::unique_ptr<Operations> make_emulated_operations(cudaStream_t stream,
                                                     EmulatedSums sums = EmulatedSums::kOfStored);

}  // namespace syncopate::cuda
