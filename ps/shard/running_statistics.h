// What workers' models remember between steps and do not train (batch norm's running statistics),
// averaged over workers as of a cut. For who hears of every push that ended a step.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ps/shard/shard_requests.h"

namespace syncopate::ps {

// One thread at a time.
class RunningStatistics {
 public:
  // Those of before anybody trained.
  explicit RunningStatistics(std::vector<float> first) : average_(std::move(first)) {}

  // The worker's push `sequence` was applied: what it had then, and samples that it trained in this
  // step. Nothing in `values`: it sent none.
  void add(WorkerId worker, std::uint64_t sequence, std::int64_t samples,
           std::vector<float> values);
  // It takes part no more, or begins anew: what it had counts no longer.
  void forget(WorkerId worker) { workers_.erase(worker); }
  // As of these entries, weighted by the samples that each worker has trained so far; where none
  // has sent any, the last average.
  const std::vector<float>& average(std::span<const CutEntry> entries);

 private:
  struct Worker {
    // By sequence, the last two: a cut wants those of a push that the newest may have passed.
    std::deque<std::pair<std::uint64_t, std::vector<float>>> kept;
    std::int64_t samples = 0;
  };

  std::map<WorkerId, Worker> workers_;
  std::vector<float> average_;
};

}  // namespace syncopate::ps
