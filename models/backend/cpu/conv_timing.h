// How long a convolution takes with either algorithm: what `syncopate-bench step --retune` fills
// the table with.
#pragma once

#include "models/backend/cpu/algorithm_table.h"

namespace syncopate {

// Seconds of one execution on one thread, the fastest of `repeats`; infinity where the library has
// no such kernel. Throws DeviceError, OutOfMemoryError.
double time_convolution(const ConvProblem& problem, ConvPass pass, ConvAlgorithm algorithm,
                        int repeats);

}  // namespace syncopate
