// Kills workers of a real run when their time has come.
#pragma once

#include <sys/types.h>

#include <vector>

#include "bench/compare/trouble.h"

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

 private:
  std::vector<Kill> kills_;  // ahead
  pid_t launcher_;
};

}  // namespace syncopate::bench
