// Averages the running statistics of workers that have all trained the same step: shard 0 receives
// them from every worker, and every worker reads the average. Statistics are added in the order of
// workers, so that the average has the same bits as an average over replicas of one process
// (strategies/snapshot.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ps/shard/consistency.h"

namespace syncopate::ps {

// The sum of the workers' statistics in the current round. Keeps a worker's statistics only until
// the statistics of all workers with lower numbers have arrived. Used by one thread at a time.
class StatisticsSum {
 public:
  explicit StatisticsSum(int workers) : workers_(workers) {}

  // Adds the statistics of a worker in this round, weighted by `samples`. The numbers of rounds
  // ascend. Statistics of an earlier round, and statistics that were already added, are ignored.
  // `values` is empty for 0 samples, else as long as the other workers' values. Returns the average
  // once the statistics of all workers have arrived; nullopt before, and if no worker has samples.
  std::optional<std::vector<float>> add(WorkerId worker, std::uint64_t round, std::int64_t samples,
                                        std::vector<float> values);

 private:
  struct Part {
    std::int64_t samples = 0;
    std::vector<float> values;
  };
  void add(const Part& part);

  int workers_;
  std::uint64_t round_ = 0;
  WorkerId next_ = 0;               // the lowest worker without statistics in the sum
  std::map<WorkerId, Part> early_;  // statistics of workers above `next_`, which arrived early
  std::vector<double> sum_;
  double samples_ = 0.0;
};

}  // namespace syncopate::ps
