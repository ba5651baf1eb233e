#include "deploy/launch/launch_rules.h"

namespace syncopate {
namespace {

// True if the other workers do not wait for the steps of a worker that is lost: under every
// consistency but kSync, and under kSync with backup workers.
bool can_miss_a_worker(const LaunchedJob& job) {
  return job.has_servers && (job.consistency.consistency != ps::Consistency::kSync ||
                             job.consistency.backup_workers > 0);
}

}  // namespace

LaunchRules choose_rules(OnFailure on_failure, int most_restarts, const LaunchedJob& job) {
  LaunchRules rules{.most_restarts = most_restarts, .restarts_together = job.has_checkpoints};
  // A role that waits for a server to be started again cannot know that this server will not be.
  rules.servers.others_notice = most_restarts == 0 || !job.has_servers || !job.has_checkpoints;
  rules.workers.others_notice = !can_miss_a_worker(job);
  if (on_failure == OnFailure::kStop) return rules;
  rules.workers.restarts_alone = can_miss_a_worker(job);
  rules.servers.restarts_alone = job.has_servers && job.has_checkpoints;
  if (on_failure == OnFailure::kContinue) {
    rules.workers.on_failure = FailureRule::kContinue;
    rules.servers.on_failure = FailureRule::kContinue;
  } else if (can_miss_a_worker(job)) {
    rules.workers.on_failure = FailureRule::kContinue;
  }
  return rules;
}

}  // namespace syncopate
