// What a replica that keeps step with nobody is told, and what it may ask: which samples are its
// own, how far the job is, and whether it has been appointed to evaluate or write a checkpoint.
// Behind it stands a coordinator (ps/coordinator/coordinator.h), in this process or at parameter
// server 0.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ps/coordinator/data_position.h"
#include "ps/coordinator/stop_kind.h"
#include "ps/shard/staleness.h"
#include "strategies/strategy.h"

namespace syncopate {

// How far all workers together are.
struct JobStatus {
  std::int64_t step = 0;     // updates applied, those before a resume included
  std::int64_t samples = 0;  // trained, ditto
  // Sums since training began: of the batches' mean losses, and of samples that were right.
  double loss = 0.0;
  std::int64_t correct = 0;
  int live_workers = 0;
  double staleness_mean = 0.0;
  std::uint64_t staleness_max = 0;
  std::optional<ps::StopKind> stopped_by;
};

// One worker's pushes on all shards together.
struct WorkerStaleness {
  int worker = 0;
  ps::StalenessHistogram histogram;
};

// A consistent copy of the variables that this worker is to do something with, while the others go
// on.
struct Appointment {
  std::uint64_t cut = 0;  // names the copy
  bool evaluates = false;
  bool writes_checkpoint = false;
  bool is_final = false;  // after it the job is over
  std::optional<ps::StopKind> stopped_by;
  JobStatus status;           // as of the cut
  ps::DataPosition position;  // as of the cut
  std::vector<WorkerStaleness> staleness;
};

// Of one replica. next_lease() from one reader thread, everything else from the replica's thread.
class AsynchronousJob {
 public:
  virtual ~AsynchronousJob() = default;

  // The next batch for this replica. Waits while all are handed out and some may come back.
  // Nothing: there is no more to train, or the job is stopping. Throws PeerError.
  virtual std::optional<ps::SampleRange> next_lease() = 0;
  // The step that begins trains this batch.
  virtual void begin_step(const ps::SampleRange& batch) = 0;

  virtual JobStatus status() const = 0;  // as last heard of; never waits
  // Lowest of the live workers: it shows progress and writes metrics.
  virtual bool speaks() const = 0;
  // Between steps; never waits. Throws PeerError when the job has failed.
  virtual std::optional<Appointment> appointment() = 0;
  // After the last lease: the next appointment, or nothing once the job is over. Throws PeerError.
  virtual std::optional<Appointment> wait_appointment() = 0;
  // The copy, on the host; of state: the average over workers. Slots only when asked for. Tensors
  // are the caller's own. Throws PeerError, ps::SnapshotWithdrawn.
  virtual Snapshot read_cut(const Appointment& appointment, bool with_slots) = 0;
  virtual void done(const Appointment& appointment) = 0;
  // Between steps, when time has passed since the last one: the next step computes with values as
  // of now instead of those that came with the answers to its last pushes.
  virtual void refresh() = 0;
  // This task was asked to stop: the job hands out nothing more, makes a last cut, and ends.
  virtual void request_stop(ps::StopKind kind) = 0;
};

}  // namespace syncopate
