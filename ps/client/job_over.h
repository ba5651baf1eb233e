// What a worker is told that comes when all is trained. Thrown by ps::Client.
#pragma once

#include "models/base/errors.h"

namespace syncopate::ps {

// The job ended well before this worker was let in: nothing is left for it to do.
class JobOver : public PeerError {
 public:
  using PeerError::PeerError;
};

}  // namespace syncopate::ps
