// Averages the workers' running statistics (the untrained state of batch norm) for a snapshot, in
// jobs without a common step of all workers. The owner of the averages, shard 0, reports every push
// that ended a step.
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

// RunningStatistics is used by one thread at a time.
class RunningStatistics {
 public:
  // Starts with the running statistics before the first step.
  explicit RunningStatistics(std::vector<float> first, std::size_t most_bytes = kMostBytes);

  // Called when the worker's push `sequence` was applied: takes its statistics then, and the
  // samples it trained in this step. `values` is empty when the push carried no statistics. At most
  // `most_bytes` of statistics are kept. If the workers send more, the average is taken over the
  // workers that came first.
  void add(WorkerId worker, std::uint64_t sequence, std::int64_t samples,
           std::vector<float> values);
  // Removes the statistics of a worker that has left or has started again.
  void forget(WorkerId worker) { workers_.erase(worker); }
  // Returns the average at these clocks, weighted by the samples that each worker has trained so
  // far. When no worker has sent statistics, the last average.
  const std::vector<float>& average(std::span<const WorkerClock> clocks);

  static constexpr std::size_t kMostBytes = std::size_t{64} << 20;

 private:
  struct Worker {
    // A worker's last two statistics by sequence: a snapshot may be of the push before the newest.
    std::deque<std::pair<std::uint64_t, std::vector<float>>> kept;
    std::int64_t samples = 0;
  };

  std::size_t most_workers_;
  std::map<WorkerId, Worker> workers_;
  std::vector<float> average_;
};

}  // namespace syncopate::ps
