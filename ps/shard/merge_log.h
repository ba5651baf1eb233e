// Which pushes make up each update of a shard under Consistency::kQuorum. The first bucket of the
// shard decides, and the other buckets follow. If each bucket decided by itself, buckets could
// merge different workers, and every worker could then wait on a bucket where the others have been
// merged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "ps/shard/shard_requests.h"

namespace syncopate::ps {

// The merges that the first bucket has decided and that other buckets have not begun. Merges are
// numbered from 0. Thread-safe.
class MergeLog {
 public:
  // buckets: number of the shard's buckets; all but one follow.
  explicit MergeLog(std::size_t buckets) : followers_(buckets > 0 ? buckets - 1 : 0) {}

  void add(std::vector<PushId> pushes);
  // Returns the pushes of a merge that the caller has not taken; nullopt if it is not decided yet.
  std::optional<std::vector<PushId>> find(std::uint64_t number) const;
  // Says that a follower has begun the merge. It is forgotten once all followers have.
  void take(std::uint64_t number);
  void clear();

 private:
  struct Merge {
    std::vector<PushId> pushes;
    std::size_t taken = 0;  // number of followers that have begun it
  };
  const std::size_t followers_;
  mutable std::mutex mutex_;
  std::uint64_t first_ = 0;   // number of merges_.front(); GUARDED_BY(mutex_)
  std::deque<Merge> merges_;  // GUARDED_BY(mutex_)
};

}  // namespace syncopate::ps
