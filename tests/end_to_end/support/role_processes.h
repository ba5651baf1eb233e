// Finds the processes that `syncopate launch` started.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace syncopate::test {

// A Role has the kind and the index that launch gives to a role, such as {"server", 1}.
struct Role {
  const char* kind = "worker";
  int index = 0;
};

// Returns the process of a role, which is a child of `launcher`. Waits up to `timeout` for the
// process to appear.
std::optional<pid_t> process_of(pid_t launcher, const Role& role,
                                std::chrono::seconds timeout = std::chrono::seconds(30));
std::optional<pid_t> worker_of(pid_t launcher, int index,
                               std::chrono::seconds timeout = std::chrono::seconds(30));

}  // namespace syncopate::test
