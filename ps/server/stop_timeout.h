// StopTimeout is the time that a server which is asked to stop waits for its job to end. Usually
// the workers are asked to stop as well: they end after their step and a checkpoint, for which the
// workers need the servers.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "models/base/deadline.h"

namespace syncopate::ps {

// A StopTimeout is used by one thread only. The constructor's arguments outlive it.
class StopTimeout {
 public:
  // `stop` and `note` are those of run_server().
  StopTimeout(const std::function<bool()>& stop,
              const std::function<void(const std::string&)>& note)
      : stop_(stop), note_(note) {}

  // Checks the stop timeout; called periodically. Throws PeerError once the server has to end: at
  // once if the job has not begun or no worker is left, otherwise when the timeout has passed.
  void check(bool has_job, bool has_workers);

 private:
  const std::function<bool()>& stop_;
  const std::function<void(const std::string&)>& note_;
  std::optional<Deadline> ends_;  // set once the server was asked to stop
};

}  // namespace syncopate::ps
