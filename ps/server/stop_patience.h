// How long a server that is asked to stop waits for its job to end. Whoever asks has asked the
// workers too, as a rule, and they end in good order: after their step, which may be long, and with
// a checkpoint, which needs the servers.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "models/base/deadline.h"

namespace syncopate::ps {

// One thread only. What it is given outlives it.
class StopPatience {
 public:
  // As run_server has them.
  StopPatience(const std::function<bool()>& stop,
               const std::function<void(const std::string&)>& note)
      : stop_(stop), note_(note) {}

  // Called now and then. Throws PeerError once the server is to end: at once where training has not
  // begun, or no worker is left that could end it.
  void check(bool has_job, bool has_workers);

 private:
  const std::function<bool()>& stop_;
  const std::function<void(const std::string&)>& note_;
  std::optional<Deadline> ends_;  // set once it was asked
};

}  // namespace syncopate::ps
