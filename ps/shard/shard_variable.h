// A bucket of a shard: where its values stand, and behind a lock what becomes of them.
#pragma once

#include <cstdint>
#include <mutex>

#include "ps/shard/shard.h"
#include "ps/shard/shared_bucket.h"

namespace syncopate::ps {

struct Shard::Variable {
  Variable(BucketId id, Bucket bucket, const ConsistencyOptions& consistency)
      : range(bucket), shared(id, bucket.end - bucket.begin, consistency) {}

  std::int64_t elements() const noexcept { return range.end - range.begin; }

  const Bucket range;         // of the arena
  std::int64_t position = 0;  // of its first element in the shard's tensors
  mutable std::mutex mutex;
  // Guarded by mutex, but for the task's content while a piece of it is under way.
  SharedBucket shared;
};

}  // namespace syncopate::ps
