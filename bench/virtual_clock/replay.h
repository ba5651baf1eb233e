// Computes a recorded job again, bit for bit. `train --record FILE` records all that depends on
// timing: the order of gradients and the versions of the values that they were computed from.
// Everything else follows from seed and flags. This shows that a surprising result did not come
// from a hardware fault.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "models/tensor/tensor.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

struct ReplayOutcome {
  std::string model;
  std::int64_t pushes = 0;   // number of gradients that were computed again
  std::string weights_hash;  // comparable with the hash in the job's summary
  Tensor values;             // final values of the variables, [arena total] f32
};

// Replays the order records `files` of all shards of one job, in any order, and compares every
// version and staleness on the way with the record. The job ran under --consistency async or ssp
// and began from its initial values; data: the data that it trained on. Throws UsageError for
// records that cannot be replayed: with other data, of a synchronous job, begun from a checkpoint,
// with restarted servers, or without exactly one record per shard. Throws FileError for records
// that contradict each other.
ReplayOutcome replay_order(std::span<const std::filesystem::path> files, const DataSplits& data);

}  // namespace syncopate::bench
