// A step's report as f32 elements of the gradient block, so that it is summed with the last bucket.
#pragma once

#include <cstdint>
#include <span>

#include "strategies/variable_store.h"

namespace syncopate {

// Before the arena's first element in every replica's gradient block; they have the arena indices
// -kTrailerElements .. -1.
inline constexpr std::int64_t kTrailerElements = 64;

// Numbers are split into digits of 14 bits, so that f32 adds those of so many replicas without
// rounding.
inline constexpr int kMostReplicasInStep = 1024;

// [kTrailerElements]. Counts below 2^42 and the loss to 2^-42 are exact; a loss that is negative,
// not finite or above 2^28 arrives as not finite. Seconds arrive as the least of all, to a fifth.
void write_trailer(const StepReport& report, std::span<float> trailer);
// Of one replica's trailer, or of the sum of many.
StepReport read_trailer(std::span<const float> trailer);

}  // namespace syncopate
