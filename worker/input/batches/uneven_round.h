// The data position after a round with different numbers of steps of the replicas.
#pragma once

#include <cstdint>
#include <span>

#include "ps/coordinator/data_position.h"

namespace syncopate {

// Returns the position after the steps of the replica with the most steps. The shares of the other
// replicas in the steps that they lack are untrained. start: where the round began. steps: by
// replica, not empty. The result has up to one range for each lacking share. Throws UsageError for
// a position that does not fit the data set.
ps::DataPosition position_after_round(std::int64_t dataset_size, std::int64_t global_batch,
                                      const ps::DataPosition& start,
                                      std::span<const std::int64_t> steps);

}  // namespace syncopate
