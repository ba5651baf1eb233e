// The one piece of work that is under way on a bucket: an update, copies of the values to those who
// asked, or the bucket's part of a cut. Made by ps/shard/shared_bucket.h, done by
// ps/shard/shard_work.cc. Who holds a part of it reads it without a lock: from its first part to
// its last one nothing here changes but the two counters.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "models/optim/optimizer.h"
#include "ps/shard/delay_compensation.h"
#include "ps/shard/shard_requests.h"
#include "ps/shard/shard_state.h"

namespace syncopate::ps {

// Where values are copied to, and whom that answers.
struct Destination {
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  std::uint64_t sequence = 0;  // of the push it answers; 0: of a read
  std::uint64_t token = 0;
  std::span<float> values{};
  std::span<float> read_copy{};  // what the shard remembers that worker to have read; may be empty
};

// What a cut is copied to. Whoever waits for it shares it: a copy that nobody wants any more may
// still be written to.
struct CutOrder {
  std::uint64_t number = 0;
  std::shared_ptr<ShardState> copy;
};

struct BucketTask {
  enum class Kind : std::uint8_t {
    kNone,
    kUpdate,   // and copies of the new values
    kCopy,     // copies of the values
    kCut,      // a copy of values and slots
    kDeliver,  // nothing but events to be handed out: one part, without elements
  };
  Kind kind = Kind::kNone;
  std::uint64_t id = 0;  // counted per bucket
  // Guarded by the bucket's lock.
  std::int64_t claimed = 0;
  std::int64_t done = 0;
  bool is_taken = false;  // somebody has a part

  // kUpdate, by worker.
  std::vector<PushRequest> pushes;
  std::vector<EncodedGradient> gradients;
  UpdateStep step;
  DelayCompensation compensation;
  struct Unanswered {
    PushId id;
    std::uint64_t token = 0;
  };
  std::vector<Unanswered> unanswered;  // pushes that asked for values, of workers that have left

  std::vector<Destination> destinations;
  CutOrder cut;  // kCut
};

}  // namespace syncopate::ps
