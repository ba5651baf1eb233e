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
inline constexpr std::array kStopSignals = {
    NamedSignal{SIGINT, "SIGINT"}, NamedSignal{SIGTERM, "SIGTERM"}, NamedSignal{SIGUSR1, "SIGUSR1"},
    NamedSignal{SIGHUP, "SIGHUP"}};

}  // namespace syncopate
