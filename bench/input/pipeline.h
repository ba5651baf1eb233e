// Measures a source of batches. Called by syncopate-bench input.
#pragma once

#include "worker/input/batches/batch_source.h"

namespace syncopate::bench {

// Returns the samples per second that the source delivers over about `seconds`, after one uncounted
// batch that starts its threads. Throws what the source throws.
double take_batches(BatchSource& source, double seconds);

}  // namespace syncopate::bench
