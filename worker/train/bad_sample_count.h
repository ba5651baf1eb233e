// Counts the bad samples of each epoch over all tasks, and ends a run with too many. Tasks exchange
// counts at the end of a round, and a round may have steps of several epochs. Used by the training
// loop of synchronous replicas.
#pragma once

#include <cstdint>
#include <map>

#include "strategies/strategy.h"
#include "worker/input/dataset.h"

namespace syncopate {

// One thread only.
class BadSampleCount {
 public:
  // limit: null if the data set has no bad samples. `limit` and `job` must outlive the object.
  BadSampleCount(const BadSamples* limit, SynchronousJob& job) : limit_(limit), job_(job) {}

  // Adds this task's bad samples of a step of `epoch` in the middle of a round.
  void add_own(std::int64_t epoch, std::int64_t num_bad) { own_[epoch] += num_bad; }
  // Ends a round of the epochs `first` to `last`. num_bad: bad samples of all tasks in the round.
  // Every task calls it with equal arguments. Throws BadSampleError if an epoch has too many.
  // Throws PeerError.
  void end_round(std::int64_t first, std::int64_t last, std::int64_t num_bad);
  // Returns the number of bad samples in the epoch that has the most.
  std::int64_t most_in_epoch() const noexcept { return most_; }

 private:
  void add(std::int64_t epoch, std::int64_t num_bad);

  const BadSamples* const limit_;
  SynchronousJob& job_;
  std::map<std::int64_t, std::int64_t> own_;  // by epoch, of the current round
  std::int64_t epoch_ = 0;
  std::int64_t num_bad_ = 0;  // of `epoch_`, of all tasks
  std::int64_t most_ = 0;
};

}  // namespace syncopate
