// What a launch does when a role fails.
#pragma once

#include <chrono>
#include <cstdint>

#include "ps/shard/consistency.h"

namespace syncopate {

enum class FailureRule : std::uint8_t { kStop, kContinue };  // the other roles end too, or go on

// For the roles of one kind.
struct RoleRule {
  FailureRule on_failure = FailureRule::kStop;
  // The living job takes it back: it is started again by itself while it has restarts left, and
  // only then counts as failed.
  bool restarts_alone = false;
  // Others miss one that failed, and end by themselves; else they are asked to at once.
  bool others_notice = true;
};

struct LaunchRules {
  RoleRule workers;
  RoleRule servers;
  // No role is started more often than once and so many times again, alone or with all others.
  int most_restarts = 0;
  // After a failure has ended the job, all start again while restarts are left.
  bool restarts_together = true;
  // Before a role is started again alone; doubled each time, up to the longest.
  std::chrono::milliseconds first_back_off = std::chrono::milliseconds(200);
  std::chrono::milliseconds longest_back_off = std::chrono::seconds(2);
  // Before all are started again.
  std::chrono::milliseconds pause_before_all = std::chrono::milliseconds(0);
  // After a failure the others may end by themselves, as tasks do that lost a peer (they notice
  // within 5 s; one that is stopped is continued), and so may servers after the last worker; then
  // comes SIGTERM, and after `grace` SIGKILL.
  std::chrono::milliseconds patience = std::chrono::seconds(8);
  std::chrono::milliseconds grace = std::chrono::seconds(5);
};

enum class OnFailure : std::uint8_t { kAuto, kStop, kContinue };  // --on-failure

// What of a job decides whether it can do without a role, and take it back.
struct LaunchedJob {
  bool has_servers = false;
  ps::ConsistencyOptions consistency;  // where it has servers
  bool has_checkpoints = false;        // a folder for them
};

// kAuto: stop, but workers of servers that wait for no one worker go on without one. Restarts alone
// are for those workers, and for servers, which go on from a file; never under kStop.
LaunchRules choose_rules(OnFailure on_failure, int most_restarts, const LaunchedJob& job);

}  // namespace syncopate
