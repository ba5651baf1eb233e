// Averages the running statistics of workers that have all trained the same step: shard 0 receives
// them from every worker, and every worker reads the average. Statistics are added in the order of
// workers, so that the average has the same bits as one over replicas of a process
// (strategies/snapshot.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "ps/shard/consistency.h"

namespace syncopate::ps {

// Used by one thread at a time. Statistics are kept only until all lower workers' statistics have
// arrived.
class StatisticsSum {
 public:
  explicit StatisticsSum(int workers) : workers_(workers) {}

  // Takes the statistics of a worker in this round, weighted by `samples`; rounds ascend. `values`
  // is empty for 0 samples, else as long as the other workers' values. Statistics that are known or
  // of an earlier round change nothing. Returns the average when the last worker's have come,
  // unless no worker has samples.
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
  WorkerId next_ = 0;               // the lowest worker without added statistics
  std::map<WorkerId, Part> early_;  // of workers after `next_`
  std::vector<double> sum_;
  double samples_ = 0.0;
};

}  // namespace syncopate::ps
