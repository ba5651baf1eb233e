// What a worker is told in the middle of its work when servers that were started anew have gone
// back to a snapshot. Thrown by ps::Client; whoever drives the training goes on from there.
#pragma once

#include <string>
#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/data_position.h"

namespace syncopate::ps {

// All servers hold the values of an earlier step: what this worker has under way is void, and so
// are the batches it was given.
class RolledBack : public Error {
 public:
  explicit RolledBack(RunPosition start)
      : Error("the servers went back to a snapshot of step " + std::to_string(start.step)),
        start_(std::move(start)) {}
  const RunPosition& start() const noexcept { return start_; }

 private:
  RunPosition start_;
};

// The copy that this worker was appointed to is no more, because a server that holds a part of it
// is gone. Another appointment comes if one is due.
class CutWithdrawn : public Error {
 public:
  CutWithdrawn() : Error("a server ended that held a part of the copy") {}
};

}  // namespace syncopate::ps
