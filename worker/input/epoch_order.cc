#include "worker/input/epoch_order.h"

#include <limits>
#include <string>

#include "models/base/errors.h"
#include "models/base/random.h"

namespace syncopate {

EpochOrder::EpochOrder(std::int64_t dataset_size, std::uint64_t seed, bool shuffle)
    : size_(static_cast<std::uint32_t>(dataset_size)), seed_(seed), shuffle_(shuffle) {
  if (shuffle && dataset_size > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError("cannot shuffle " + std::to_string(dataset_size) +
                     " samples; expected fewer than 2^32");
  }
}

std::shared_ptr<const std::vector<std::uint32_t>> EpochOrder::of_epoch(std::int64_t epoch) const {
  if (!shuffle_) return nullptr;
  const std::lock_guard lock(mutex_);
  Entry& entry = recent_[static_cast<std::size_t>(epoch & 1)];
  if (entry.epoch != epoch) {
    const std::uint64_t stream = hash_name("epoch order") + static_cast<std::uint64_t>(epoch);
    entry.order = std::make_shared<const std::vector<std::uint32_t>>(
        random_permutation(size_, seed_, stream));
    entry.epoch = epoch;
  }
  return entry.order;
}

}  // namespace syncopate
