// Computes the convolutions and products of a program in plain loops on the CPU, in place of
// NVIDIA's libraries: with emulated kernels and an emulated runtime, whole programs of the CUDA
// backend run without a GPU.
#pragma once

#include "models/backend/cuda/operations.h"

namespace syncopate::cuda {

// Describes the values from which a convolution sums its output for a batch norm: the stored
// values, as cuDNN's graph says, or those before rounding, which a kernel has in registers. NVIDIA
// does not document which of them its engines use. kNone: the library has no such convolution.
enum class EmulatedSums : std::uint8_t { kOfStored, kOfUnrounded, kNone };

// Makes operations that run on an emulated stream (emulated_stream.h). Convolutions with sums exist
// where cuDNN has them on an H200: in f16, with channels in packs of eight.
std::unique_ptr<Operations> make_emulated_operations(cudaStream_t stream,
                                                     EmulatedSums sums = EmulatedSums::kOfStored);

}  // namespace syncopate::cuda
