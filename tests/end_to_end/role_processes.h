// Finds the processes that `syncopate launch` started.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>

namespace syncopate::test {

// Worker `index` among the children of process `launcher`; waits up to `patience` for it to appear.
std::optional<pid_t> worker_of(pid_t launcher, int index,
                               std::chrono::seconds patience = std::chrono::seconds(10));

}  // namespace syncopate::test
