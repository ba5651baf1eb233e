// Finds the processes that `syncopate launch` started.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace syncopate::test {

// As launch names it: {"server", 1}.
struct Role {
  const char* kind = "worker";
  int index = 0;
};

// That role's process, a child of `launcher`'s; waits up to `patience` for it to appear.
std::optional<pid_t> process_of(pid_t launcher, const Role& role,
                                std::chrono::seconds patience = std::chrono::seconds(30));
std::optional<pid_t> worker_of(pid_t launcher, int index,
                               std::chrono::seconds patience = std::chrono::seconds(30));

}  // namespace syncopate::test
