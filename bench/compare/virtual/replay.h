// A recorded job computed again, bit for bit: `train --record FILE` wrote down all that timing
// decided, which gradient came when and which values it was of, and the rest follows from seed and
// flags. Shows that a surprising run was no accident of the machine.
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
  std::int64_t pushes = 0;   // gradients that were computed again
  std::string weights_hash;  // as the job's summary has it
  Tensor values;             // [arena total] f32
};

// files: of all shards, in any order, of one job from its first values on, under --consistency
// async or ssp. data: what the job trained on. Every version and staleness on the way is held
// against the record.
// Throws UsageError for records that cannot be replayed (of other data, of workers in step, begun
// from a checkpoint, of servers that were started anew, of one shard twice or not at all),
// FileError for those that do not fit together.
ReplayOutcome replay_order(std::span<const std::filesystem::path> files, const DataSplits& data);

}  // namespace syncopate::bench
