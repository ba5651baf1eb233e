// Exceptions of ps::Client that do not mean that the job has failed. The training loop catches
// them.
#pragma once

#include <string>
#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/data_position.h"

namespace syncopate::ps {

// Thrown when all servers were restored to an earlier step, because a server was started again. The
// open requests and batches of this worker are dropped. The worker calls Client::resume() and
// continues from the position that start() returns.
class RolledBack : public Error {
 public:
  explicit RolledBack(RunPosition start)
      : Error("the servers went back to a snapshot of step " + std::to_string(start.step)),
        start_(std::move(start)) {}
  const RunPosition& start() const noexcept { return start_; }

 private:
  RunPosition start_;
};

// Thrown when a server that held a part of the assigned snapshot has ended, so the snapshot cannot
// be read. The coordinator sends another assignment if one is due.
class SnapshotWithdrawn : public Error {
 public:
  SnapshotWithdrawn() : Error("a server that held a part of the snapshot has ended") {}
};

// Thrown when the job ended successfully before this worker was accepted: there is nothing left to
// train.
class JobOver : public PeerError {
 public:
  using PeerError::PeerError;
};

}  // namespace syncopate::ps
