// Measures a source of batches. Called by syncopate-bench input.
#pragma once

#include "worker/input/batches/batch_source.h"

namespace syncopate::bench {

// Takes batches for about `seconds` and returns the samples per second. One batch before them is
// not counted, because it starts the threads of the source. Throws what the source throws.
double take_batches(BatchSource& source, double seconds);

}  // namespace syncopate::bench
