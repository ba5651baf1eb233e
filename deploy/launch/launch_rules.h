// What a launch does when a role fails.
#pragma once

#include <chrono>
#include <cstdint>

namespace syncopate {

enum class FailureRule : std::uint8_t { kStop, kContinue };

struct LaunchRules {
  FailureRule on_failure = FailureRule::kStop;
  int most_restarts = 0;
  // After a failure the others may end by themselves, as tasks do that lost a peer (they notice
  // within 5 s; one that is stopped is continued); then comes SIGTERM, and after `grace` SIGKILL.
  std::chrono::milliseconds patience = std::chrono::seconds(8);
  std::chrono::milliseconds grace = std::chrono::seconds(5);
};

}  // namespace syncopate
