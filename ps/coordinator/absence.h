// How long a task waits for a server that is gone, because somebody may start it again.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "models/base/deadline.h"

namespace syncopate::ps {

// One thread only.
class Absence {
 public:
  // waiting: "this worker". asked_to_stop: whether it is; empty: nobody asks. Whoever is asked will
  // hardly see the server back, and waits for as long as a restart takes at most.
  Absence(std::string waiting, std::chrono::milliseconds patience,
          std::function<bool()> asked_to_stop);

  void begin();  // unless it has begun
  void end() noexcept { until_.reset(); }
  // We did not run for so long: a wait that has begun begins anew.
  void forgive(std::chrono::nanoseconds slept);

  // Why `server` is not waited for any longer, once that is so; asked now and then.
  std::optional<std::string> verdict(const std::string& server, bool has_checkpoints);

 private:
  void cut_short();

  std::string waiting_;
  std::chrono::milliseconds patience_;
  std::function<bool()> asked_to_stop_;
  std::optional<Deadline> until_;  // set while the server is away
  bool is_cut_short_ = false;
  std::chrono::nanoseconds slept_{0};
  std::optional<Deadline> awake_;    // whatever is gone before this passes, went while we slept
  bool has_gone_meanwhile_ = false;  // and would have given us up
};

}  // namespace syncopate::ps
