// Computes a recorded job again, bit for bit. `train --record FILE` records everything that depends
// on timing: the order of gradients, and the versions of the values from which they were computed.
// Everything else follows from seed and flags. A replay can show that a surprising result was not
// caused by a hardware fault.
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
  std::string weights_hash;  // to compare with the hash in the job's summary
  Tensor values;             // final values of the variables, [arena total] f32
};

// Replays one job from the records of all its shards, and compares every version and staleness with
// the records. files: the records, in any order. data: the data on which the job was trained. The
// job must have run with --consistency async or ssp and begun from its initial values. Throws
// UsageError for records that cannot be replayed: records of other data, of a synchronous job, of a
// job that began from a checkpoint or restarted servers, or not exactly one record per shard.
// Throws FileError for records that contradict each other.
ReplayOutcome replay_order(std::span<const std::filesystem::path> files, const DataSplits& data);

}  // namespace syncopate::bench
