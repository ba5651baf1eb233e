// Kills workers of a real run when their time has come.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/fault_injection.h"

namespace syncopate::bench {

// One thread only.
class KillSchedule {
 public:
  // launcher: the process of `syncopate launch`.
  KillSchedule(std::vector<Kill> kills, pid_t launcher)
      : kills_(std::move(kills)), launcher_(launcher) {}

  // Kills who is due (SIGKILL). A worker that is not there, since it is just being started again,
  // is killed as soon as it is.
  void act(double seconds_trained);
  const std::vector<Kill>& left() const noexcept { return kills_; }  // not killed yet
  // As launch calls them: "worker 1".
  const std::set<std::string>& killed_roles() const noexcept { return killed_roles_; }

 private:
  std::vector<Kill> kills_;  // ahead
  std::set<std::string> killed_roles_;
  pid_t launcher_;
};

}  // namespace syncopate::bench
