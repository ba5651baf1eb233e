// A step's report as f32 elements of the gradient block, so that it is summed with the last bucket.
#pragma once

#include <cstdint>
#include <span>

#include "strategies/variable_store.h"

namespace syncopate {

// Before the arena's first element in every replica's gradient block; they have the arena indices
// -kTrailerElements .. -1.
inline constexpr std::int64_t kTrailerElements = 64;

// [kTrailerElements]. Numbers are split into parts that f32 sums without rounding, over up to 256
// replicas of 2^31 samples each; of the loss 48 bits arrive.
void write_trailer(const StepReport& report, std::span<float> trailer);
StepReport read_trailer(std::span<const float> trailer);

}  // namespace syncopate
