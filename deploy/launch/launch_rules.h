// The rules by which `launch` decides what to do after a role (the process of a worker or a server)
// has failed. Also the late workers, which `launch` starts while the job runs.
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

// What `launch` does after the failure of a role. kStop: it ends the other roles. kContinue: it
// lets the other roles go on.
enum class FailureRule : std::uint8_t { kStop, kContinue };

// The rule for all roles of one kind (workers or servers).
struct RoleRule {
  FailureRule on_failure = FailureRule::kStop;
  // True if the running job accepts a role again after its failure. The role is then started again
  // alone. It counts as failed only when it has no restarts left.
  bool restarts_alone = false;
  // True if the other roles detect a failed role and end by themselves; false if launch asks them
  // to end at once.
  bool others_detect_failure = true;
};

struct LaunchRules {
  RoleRule workers;
  RoleRule servers;
  // True if the roles meet at a rendezvous at the start, and then report through the descriptor in
  // SYNCOPATE_MET_FD that they have met. If a role fails before the roles have met, the job ends,
  // because the other roles would wait for the failed role until their rendezvous timeout.
  bool roles_meet = false;
  // The largest number of restarts of one role, alone or together with all other roles.
  int most_restarts = 0;
  // True if all roles are started again after a failure has ended the job, as long as restarts are
  // left.
  bool restarts_together = true;
  // The delay before a role is first started again alone. The delay doubles with each restart, up
  // to `longest_back_off`.
  std::chrono::milliseconds first_back_off = std::chrono::milliseconds(200);
  std::chrono::milliseconds longest_back_off = std::chrono::seconds(2);
  // A role that may be restarted alone is killed after it has been stopped (SIGSTOP) for this time,
  // so that it is started again. After this time the other roles treat a stopped role as lost.
  // Before the roles have met, every role that is stopped for this time is killed.
  std::chrono::milliseconds stopped_timeout = std::chrono::seconds(5);
  // The delay before all roles are started again together.
  std::chrono::milliseconds pause_before_all = std::chrono::milliseconds(0);
  // The time in which roles must end by themselves: all roles after a failure, and servers after
  // the last worker has ended. The time suffices, because a task detects a lost peer within 5 s and
  // launch continues stopped roles. After this time launch sends SIGTERM, and after another `grace`
  // it sends SIGKILL.
  std::chrono::milliseconds timeout = std::chrono::seconds(8);
  std::chrono::milliseconds grace = std::chrono::seconds(5);
  // The folder where launch finds the kernel's files, proc/... and sys/... Tests pass a folder
  // of their own.
  std::filesystem::path system_root = "/";
};

enum class OnFailure : std::uint8_t { kAuto, kStop, kContinue };  // the values of --on-failure
constexpr auto named_values(OnFailure /*type*/) {
  return std::array{Named{"auto", OnFailure::kAuto}, Named{"stop", OnFailure::kStop},
                    Named{"continue", OnFailure::kContinue}};
}

// The properties that decide whether a job can lose a role and accept the role again.
struct LaunchedJob {
  bool has_servers = false;
  ps::ConsistencyOptions consistency;  // valid only if the job has servers
  bool has_checkpoints = false;        // true if the job has a folder for checkpoints
};

// Chooses what `launch` does when roles of this job fail. on_failure: for kAuto, the failure rule
// of workers is kContinue if can_go_on_without_a_worker(job), and else kStop; the rule of servers
// is kStop. Workers are restarted alone only if can_go_on_without_a_worker(job), and servers only
// if they restore their state from a file. If `on_failure` is kStop, no role is restarted alone.
LaunchRules choose_rules(OnFailure on_failure, int most_restarts, const LaunchedJob& job);

// Returns whether the job can go on without one of its workers, because the other workers do not
// wait for steps of the missing worker.
bool can_go_on_without_a_worker(const LaunchedJob& job) noexcept;

// A late worker, which joins a running job at a given time. Made from --join of `launch` and of
// `syncopate-bench compare`.
struct Join {
  int worker = 0;
  double at_seconds = 0.0;  // the start time, in seconds after the start of the other roles
};

// Parses a value of the flag --join, such as "worker=4,at=30s". Throws UsageError if the text has
// another form.
Join parse_join(const std::string& text);
std::string to_string(const Join& join);  // Returns the text that parse_join() reads.

// Returns the number of worker indices of the job: `workers`, or the highest index of a late worker
// + 1 if this is more.
int places_of(int workers, const std::vector<Join>& joins);
// Returns, in ascending order, the indices of the workers that are absent at the start: the late
// workers, and the unused indices between `workers` and the highest late worker.
std::vector<int> late_workers(int workers, const std::vector<Join>& joins);

}  // namespace syncopate
