// The staleness of all pushes that a shard has applied, by worker. All buckets of the shard share
// one histogram per worker, since a histogram per bucket and worker would take more memory than the
// values of a small network.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "ps/shard/consistency.h"
#include "ps/shard/staleness.h"

namespace syncopate::ps {

// Thread-safe.
class StalenessCounts {
 public:
  void add(WorkerId worker, std::uint64_t staleness);
  // Returns the totals over all workers, in constant time.
  StalenessTotals totals() const;
  // Returns one histogram per worker, from worker 0 to the highest worker that has pushed. The lock
  // is held for one worker at a time.
  std::vector<StalenessHistogram> by_worker() const;

 private:
  mutable std::mutex mutex_;
  std::vector<StalenessHistogram> workers_;
  StalenessTotals totals_;
};

}  // namespace syncopate::ps
