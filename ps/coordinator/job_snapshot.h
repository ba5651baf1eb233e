// The coordinator's part of a snapshot: the state of the job that a restarted server 0 continues
// from, and the encoding of this state. The snapshot file of shard 0 contains the coordinator's
// part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "ps/coordinator/stop_kind.h"
#include "ps/wire/message.h"

namespace syncopate::ps {

// The progress of a job: the position of all workers together, and sums since training began: the
// losses of all batches, and the main metric (such as accuracy) of all samples.
struct JobProgress {
  RunPosition at;
  double loss = 0.0;
  double metric = 0.0;
};

// A trained batch. The servers have collected its gradient for a later update (kRennala).
struct CollectedBatch {
  SampleRange samples;
  double loss = 0.0;          // its part of the loss of the update
  std::uint64_t version = 2;  // of shard 0's last bucket, after the gradient
};

struct JobSnapshot {
  struct Server {
    std::uint32_t incarnation = 0;
    std::string endpoint;
    std::uint64_t fingerprint = 0;
    std::vector<std::uint64_t> snapshots;
  };

  std::uint64_t number = 0;
  int generation = 0;
  wire::DeclarationT declaration;
  int declared_by = 0;
  std::vector<std::uint32_t> worker_incarnations;
  std::vector<std::uint64_t> worker_pushes;  // by worker: its last push in the snapshot
  std::vector<Server> servers;
  JobProgress progress;
  // Trained batches of the step under way, if a step has several batches.
  std::int64_t batches_of_step = 0;
  std::vector<CollectedBatch> collected = {};  // under kRennala: of the step under way
  std::int64_t batches_left = 0;               // batches still to train after progress.at
  // The number of batches that lost workers had pushed in part and that were trained again.
  std::int64_t repeated_batches = 0;
  std::optional<StopKind> stopped_by;
};

std::vector<std::byte> to_bytes(const JobSnapshot& job);
// Decodes a JobSnapshot. Throws FileError for bytes that are truncated or not a JobSnapshot.
JobSnapshot job_snapshot_of(std::span<const std::byte> bytes);

}  // namespace syncopate::ps
