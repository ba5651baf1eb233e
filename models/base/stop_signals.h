// The signals that ask a task to stop after a checkpoint.
#pragma once

#include <array>
#include <csignal>
#include <string_view>

namespace syncopate {

struct NamedSignal {
  int number;
  std::string_view name;
};
// The signals that ask a task to stop. Batch systems announce the end of a job by SIGUSR1 or
// SIGUSR2, and the end of the job's CPU time by SIGXCPU.
inline constexpr std::array kStopSignals = {
    NamedSignal{SIGINT, "SIGINT"},   NamedSignal{SIGTERM, "SIGTERM"},
    NamedSignal{SIGUSR1, "SIGUSR1"}, NamedSignal{SIGUSR2, "SIGUSR2"},
    NamedSignal{SIGHUP, "SIGHUP"},   NamedSignal{SIGXCPU, "SIGXCPU"}};

}  // namespace syncopate
