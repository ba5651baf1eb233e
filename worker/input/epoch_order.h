// The order of the samples of an epoch: a permutation that is a function of (seed, epoch), or 0, 1,
// 2, ... without shuffling.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace syncopate {

// Thread-safe. Keeps the two latest epochs, because readers may be in two epochs at a time.
class EpochOrder {
 public:
  // Throws UsageError for a shuffled data set of 2^32 or more samples.
  EpochOrder(std::int64_t dataset_size, std::uint64_t seed, bool shuffle);

  // Returns the permutation of 0 .. dataset_size - 1; null stands for 0, 1, 2, ... The first caller
  // computes an epoch (about 1 ms for 60,000 samples) while other callers wait.
  std::shared_ptr<const std::vector<std::uint32_t>> of_epoch(std::int64_t epoch) const;

 private:
  struct Entry {
    std::int64_t epoch = -1;
    std::shared_ptr<const std::vector<std::uint32_t>> order;
  };

  std::uint32_t size_;
  std::uint64_t seed_;
  bool shuffle_;
  mutable std::mutex mutex_;
  mutable std::array<Entry, 2> recent_;  // guarded by mutex_; indexed by epoch % 2
};

}  // namespace syncopate
