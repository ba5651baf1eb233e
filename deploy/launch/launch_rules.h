// The rules of a launch: what `launch` does after a role has failed, and which workers start later.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "models/base/enum_names.h"
#include "ps/shard/consistency.h"

namespace syncopate {

// What happens after the failure of a role. kStop: the other roles end too. kContinue: they go on.
enum class FailureRule : std::uint8_t { kStop, kContinue };

// A RoleRule applies to all roles of one kind (workers or servers).
struct RoleRule {
  FailureRule on_failure = FailureRule::kStop;
  // True if the running job accepts the role again: the role is started again by itself while it
  // has restarts left, and counts as failed only after that.
  bool restarts_alone = false;
  // True if the other roles detect a failed role and end by themselves; false if launch asks them
  // to end at once.
  bool others_detect_failure = true;
};

struct LaunchRules {
  RoleRule workers;
  RoleRule servers;
  // True if the roles meet at the start and report that they have, at the descriptor that
  // SYNCOPATE_MET_FD names. The failure of a role before that ends the job: the others would wait
  // for it until their rendezvous timeout.
  bool roles_meet = false;
  // The largest number of restarts of one role, alone or together with all other roles.
  int most_restarts = 0;
  // True if all roles are started again after a failure has ended the job, while restarts are left.
  bool restarts_together = true;
  // The delay before a role is first started again alone. The delay doubles with each restart, up
  // to `longest_back_off`.
  std::chrono::milliseconds first_back_off = std::chrono::milliseconds(200);
  std::chrono::milliseconds longest_back_off = std::chrono::seconds(2);
  // A role that has been stopped (SIGSTOP) for this time is killed if it restarts alone, so that it
  // is started again: the other roles have given it up by then. Before the roles have met, every
  // role that is stopped for this time is killed.
  std::chrono::milliseconds stopped_timeout = std::chrono::seconds(5);
  // The delay before all roles are started again together.
  std::chrono::milliseconds pause_before_all = std::chrono::milliseconds(0);
  // The time that the other roles have to end by themselves: tasks after a failure (a task detects
  // a lost peer within 5 s; launch continues a stopped one), servers after the last worker has
  // ended. Then launch sends SIGTERM, and SIGKILL after `grace`.
  std::chrono::milliseconds timeout = std::chrono::seconds(8);
  std::chrono::milliseconds grace = std::chrono::seconds(5);
  std::filesystem::path system_root = "/";  // the files of the kernel are below it
};

enum class OnFailure : std::uint8_t { kAuto, kStop, kContinue };  // the values of --on-failure
constexpr auto named_values(OnFailure /*type*/) {
  return std::array{Named{"auto", OnFailure::kAuto}, Named{"stop", OnFailure::kStop},
                    Named{"continue", OnFailure::kContinue}};
}

// LaunchedJob has the properties that decide whether a job can lose a role and accept that role
// again.
struct LaunchedJob {
  bool has_servers = false;
  ps::ConsistencyOptions consistency;  // valid only if the job has servers
  bool has_checkpoints = false;        // true if the job has a folder for checkpoints
};

// Chooses the rules of a job. kAuto means kStop, except that workers of servers that need not wait
// for each worker continue without a failed worker. Only those workers, and servers that restore
// their state from a file, are restarted alone; under kStop no role is.
LaunchRules choose_rules(OnFailure on_failure, int most_restarts, const LaunchedJob& job);

// Returns whether the job can go on without one of its workers: the others do not wait for its
// steps.
bool can_go_on_without_a_worker(const LaunchedJob& job) noexcept;

// A late worker: it joins a running job at a given time, as --join of `launch` and of
// `syncopate-bench compare` requests.
struct Join {
  int worker = 0;
  double at_seconds = 0.0;  // the start time, in seconds after the start of the other roles
};

// Parses a --join such as "worker=4,at=30s". Throws UsageError if the text has another form.
Join parse_join(const std::string& text);
std::string to_string(const Join& join);  // Returns the text that parse_join() reads.

// Returns how many worker indices the job has: `workers`, or more where a late worker has a higher
// index.
int places_of(int workers, const std::vector<Join>& joins);
// Returns, in ascending order, the indices of the workers that are absent at the start: the late
// workers, and the unused indices between `workers` and the highest late worker.
std::vector<int> late_workers(int workers, const std::vector<Join>& joins);

}  // namespace syncopate
