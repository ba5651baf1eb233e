// Measures a source of batches. Called by syncopate-bench input.
#pragma once

#include "worker/input/batches/batch_source.h"

namespace syncopate::bench {

// Takes batches for about `seconds` and returns the samples per second. The first batch, which
// starts the threads of the source, is not counted. Throws what the source throws.
double take_batches(BatchSource& source, double seconds);

}  // namespace syncopate::bench
