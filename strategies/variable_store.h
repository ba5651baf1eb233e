// The three verbs in which strategies differ: pull, push, commit. One store per replica, used by
// its thread only.
#pragma once

#include "models/backend/model.h"
#include "models/optim/optimizer.h"

namespace syncopate {

class VariableStore {
 public:
  virtual ~VariableStore() = default;
  // Starts to fetch the values this step computes with.
  virtual void pull() = 0;
  // Returns when the bucket's values may be read.
  virtual void wait_values(BucketId bucket) = 0;
  // The bucket's gradient is complete once `ready` has passed; may start to travel, must not block
  // for long.
  virtual void push(BucketId bucket, const Event& ready) = 0;
  // Every push of this step is summed and applied, as the strategy promises.
  virtual void commit(const UpdateStep& step) = 0;
};

}  // namespace syncopate
