// The order of an epoch's samples: a permutation that is a function of (seed, epoch), or 0, 1, 2,
// ...
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace syncopate {

// Thread-safe. Keeps the two latest epochs asked for, since readers may stand on both sides of a
// border.
class EpochOrder {
 public:
  // Throws UsageError when a shuffled dataset has 2^32 samples or more.
  EpochOrder(std::int64_t dataset_size, std::uint64_t seed, bool shuffle);

  // Permutation of 0 .. dataset_size - 1; null means 0, 1, 2, ...
  // The first caller of an epoch computes it while others that want it wait: about 1 ms for 60,000.
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
  mutable std::array<Entry, 2> recent_;  // guarded by mutex_; an epoch stands at its parity
};

}  // namespace syncopate
