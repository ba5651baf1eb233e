#include "ps/shard/staleness_counts.h"

#include <cstddef>

namespace syncopate::ps {

void StalenessCounts::add(WorkerId worker, std::uint64_t staleness) {
  const auto at = static_cast<std::size_t>(worker);
  const std::lock_guard lock(mutex_);
  if (workers_.size() <= at) workers_.resize(at + 1);
  workers_[at].add(staleness);
  totals_.add(staleness);
}

StalenessTotals StalenessCounts::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

std::vector<StalenessHistogram> StalenessCounts::by_worker() const {
  std::vector<StalenessHistogram> copies;
  for (std::size_t worker = 0;; ++worker) {
    const std::lock_guard lock(mutex_);
    if (worker >= workers_.size()) return copies;
    copies.push_back(workers_[worker]);
  }
}

}  // namespace syncopate::ps
