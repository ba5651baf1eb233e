// Averages the workers' running statistics (the untrained state of batch norm) for a snapshot, in
// jobs where the workers do not step together. Shard 0 owns this object, and calls add() for every
// push that ended a step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ps/shard/shard_requests.h"

namespace syncopate::ps {

// The running statistics of the workers, for their average in snapshots. Used by one thread at a
// time.
class RunningStatistics {
 public:
  // `first` are the running statistics before the first step; average() returns them until a worker
  // has sent statistics. `most_bytes` limits the memory for the workers' statistics.
  explicit RunningStatistics(std::vector<float> first, std::size_t most_bytes = kMostBytes);

  // Stores the statistics that came with the worker's push number `sequence`, and adds `samples` to
  // the worker's weight. Called when the push was applied. `samples` is the number of samples that
  // the worker trained in this step. `values` are the statistics that the push carried; empty if it
  // carried none. If the statistics of all workers exceed the constructor's `most_bytes`, only the
  // workers that were first to send are averaged.
  void add(WorkerId worker, std::uint64_t sequence, std::int64_t samples,
           std::vector<float> values);
  // Removes the statistics of a worker that has left or has started again.
  void forget(WorkerId worker) { workers_.erase(worker); }
  // Returns the average of the workers' statistics, weighted by the samples that each worker has
  // trained so far. Of each worker, the average includes the last statistics that the worker sent
  // up to its clock in `clocks`. Returns the previous average if no worker has sent statistics.
  const std::vector<float>& average(std::span<const WorkerClock> clocks);

  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

 private:
  struct Worker {
    // The sequence and the statistics of the worker's last two pushes. Two are kept because a
    // snapshot may include only the push before the last one.
    std::deque<std::pair<std::uint64_t, std::vector<float>>> kept;
    std::int64_t samples = 0;
  };

  std::size_t most_workers_;
  std::map<WorkerId, Worker> workers_;
  std::vector<float> average_;
};

}  // namespace syncopate::ps
