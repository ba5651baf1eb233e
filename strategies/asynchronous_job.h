// The job as one replica of an asynchronous strategy sees it: the samples that the replica trains,
// the progress of the whole job, and assignments to evaluate or to write a checkpoint. A
// coordinator (ps/coordinator/coordinator.h) in this process or at parameter server 0 decides all
// of these.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "ps/coordinator/stop_kind.h"
#include "ps/shard/staleness.h"
#include "strategies/snapshot.h"

namespace syncopate {

// The progress of all workers of the job together.
struct JobStatus {
  std::int64_t step = 0;     // number of updates applied, also before a resume
  std::int64_t samples = 0;  // number of samples in these updates, also before a resume
  // Sums over all trained batches: of the batches' mean losses, and of the samples' main metric.
  double loss = 0.0;
  double metric = 0.0;
  int live_workers = 0;
  double staleness_mean = 0.0;
  std::uint64_t staleness_max = 0;
  std::optional<ps::StopKind> stopped_by;
  double learning_rate_factor = 1.0;  // of the scheduled rate: RunPosition::rules
  std::int64_t num_bad_in_epoch = 0;  // Scores::num_bad of the epoch that had the most so far
};

// The staleness of one worker's pushes, on all shards together.
struct WorkerStaleness {
  int worker = 0;
  ps::StalenessHistogram histogram;
};

// A request of the coordinator to one worker: evaluate a snapshot of the variables, write it to a
// checkpoint, or both, while the other workers go on training.
struct Assignment {
  std::uint64_t snapshot_id = 0;
  bool evaluates = false;
  bool writes_checkpoint = false;
  bool is_final = false;  // the job ends when this assignment is done
  std::optional<ps::StopKind> stopped_by;
  JobStatus status;           // progress of the job when the snapshot was taken
  ps::DataPosition position;  // place in the data set when the snapshot was taken
  std::vector<double> rules;  // RunPosition::rules; done() passes them on to the next assignment
  std::vector<WorkerStaleness> staleness;
  std::int64_t repeated_batches = 0;  // trained again after a worker died that had pushed a part
};

// The job as one replica sees it. next_lease() is called by one reader thread, everything else by
// the replica's thread.
class AsynchronousJob {
 public:
  virtual ~AsynchronousJob() = default;

  // Returns the next batch for this replica. Waits while all batches are handed out and some may
  // come back from a lost worker. Returns nothing when no batch is left to train or the job is
  // stopping. Throws PeerError.
  virtual std::optional<ps::SampleRange> next_lease() = 0;
  // Tells the job which batch the next step trains. Call before each step.
  virtual void begin_step(const ps::SampleRange& batch) = 0;

  // Returns the latest status of the job that this process has received. Does not wait.
  virtual JobStatus status() const = 0;
  // Whether this replica is the lowest live worker, which shows progress and writes metrics.
  virtual bool is_reporter() const = 0;
  // Returns the coordinator's next request (to evaluate or to write a checkpoint) if one has
  // arrived. Call between steps; does not wait. Throws PeerError when the job has failed.
  virtual std::optional<Assignment> next_assignment() = 0;
  // Waits for the coordinator's next request to evaluate or to write a checkpoint; returns nothing
  // when the job is over. Call after the last batch. Throws PeerError.
  virtual std::optional<Assignment> wait_assignment() = 0;
  // Returns the snapshot of an assignment in tensors that the caller owns; its `state` is the
  // average over workers. The slots are read only if asked for. Throws PeerError,
  // ps::SnapshotWithdrawn.
  virtual Snapshot read_snapshot(const Assignment& assignment, bool with_slots) = 0;
  virtual void done(const Assignment& assignment) = 0;
  // Makes the next step compute with the current values of the variables instead of those that came
  // with the answers to the last pushes. Call when an assignment has interrupted the training.
  virtual void refresh() = 0;
  // Reports to the coordinator that this task was asked to stop. The coordinator then hands out no
  // more batches, makes a last snapshot, and ends the job.
  virtual void request_stop(ps::StopKind kind) = 0;
};

}  // namespace syncopate
