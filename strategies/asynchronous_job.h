// The interface of a replica of an asynchronous strategy to its job: which samples the replica
// trains, how far the whole job is, and assignments to evaluate or to write a checkpoint. A
// coordinator (ps/coordinator/coordinator.h), in this process or at parameter server 0, decides all
// of this.
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
  std::int64_t step = 0;     // number of updates applied, including those before a resume
  std::int64_t samples = 0;  // number of samples in these updates
  // Sums over everything trained so far: `loss` is the sum of the mean loss of each batch, `metric`
  // the sum of the main metric (such as accuracy) of each sample.
  double loss = 0.0;
  double metric = 0.0;
  int live_workers = 0;
  double staleness_mean = 0.0;
  std::uint64_t staleness_max = 0;
  std::optional<ps::StopKind> stopped_by;
  // The factor by which the scheduled learning rate is multiplied; the first number of
  // RunPosition::rules.
  double learning_rate_factor = 1.0;
  std::int64_t num_bad_in_epoch = 0;  // most samples of any epoch so far that could not be read
};

// The staleness of one worker's pushes to all shards.
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
  std::vector<double> rules;  // RunPosition::rules; done() sends the rules to the coordinator
  std::int64_t pushes = 0;    // RunPosition::pushes
  std::vector<WorkerStaleness> staleness;
  // Number of batches that were trained again, because a worker was lost after it had pushed a part
  // of the batch's gradients.
  std::int64_t repeated_batches = 0;
};

// The job as one asynchronous replica sees it. A reader thread calls next_lease(); the replica's
// thread calls all other functions.
class AsynchronousJob {
 public:
  virtual ~AsynchronousJob() = default;

  // Returns the next batch for this replica. Waits while all batches are handed out and not all are
  // trained, because the batches of a worker that is lost are handed out again. Returns nullopt
  // when no batch is left to train or the job is stopping. If workers train in rounds, returns an
  // empty range once before it waits for batches of other workers: this worker then ends its round,
  // since the others may wait for it. Throws PeerError.
  virtual std::optional<ps::SampleRange> next_lease() = 0;
  // Sets the batch that the next step trains. Must be called before each step. The next push
  // contains all batches since the push before it.
  virtual void begin_step(const ps::SampleRange& batch) = 0;

  // Returns the last job status that this process has received. Does not wait.
  virtual JobStatus status() const = 0;
  // Returns whether this replica is the live worker with the lowest index, which shows progress and
  // writes metrics.
  virtual bool is_reporter() const = 0;
  // Returns the next assignment if one has arrived. Does not wait. Called between steps, and not
  // within a round. Throws PeerError if the job has failed.
  virtual std::optional<Assignment> next_assignment() = 0;
  // Waits for the next assignment and returns it; nullopt when the job is over. Called after the
  // last batch. Throws PeerError.
  virtual std::optional<Assignment> wait_assignment() = 0;
  // Returns the snapshot of an assignment in tensors that the caller owns. Snapshot::state is the
  // average of the workers' running statistics. The slots are read only if `with_slots`. Throws
  // PeerError, ps::SnapshotWithdrawn.
  virtual Snapshot read_snapshot(const Assignment& assignment, bool with_slots) = 0;
  virtual void done(const Assignment& assignment) = 0;
  // Makes the next step use the current values of the variables instead of the values in the
  // answers to the last pushes. Called after an assignment has interrupted training.
  virtual void refresh() = 0;
  // Reports to the coordinator that this task was asked to stop. The coordinator then hands out no
  // more batches, makes a last snapshot, and ends the job.
  virtual void request_stop(ps::StopKind kind) = 0;
};

}  // namespace syncopate
