#include "deploy/launch/launch_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "models/base/parse_number.h"

namespace syncopate {
namespace {

constexpr int kHighestWorker = 1 << 16;

bool joins_later(const std::vector<Join>& joins, int worker) {
  return std::any_of(joins.begin(), joins.end(),
                     [&](const Join& join) { return join.worker == worker; });
}

}  // namespace

bool can_go_on_without_a_worker(const LaunchedJob& job) noexcept {
  return job.has_servers && (job.consistency.consistency != ps::Consistency::kSync ||
                             job.consistency.backup_workers > 0);
}

LaunchRules choose_rules(OnFailure on_failure, int most_restarts, const LaunchedJob& job) {
  LaunchRules rules{.most_restarts = most_restarts, .restarts_together = job.has_checkpoints};
  // The roles of a job that can restart servers wait for a lost server. They do not notice that the
  // server will not be started again.
  rules.servers.others_detect_failure =
      most_restarts == 0 || !job.has_servers || !job.has_checkpoints;
  rules.workers.others_detect_failure = !can_go_on_without_a_worker(job);
  if (on_failure == OnFailure::kStop) return rules;
  rules.workers.restarts_alone = can_go_on_without_a_worker(job);
  rules.servers.restarts_alone = job.has_servers && job.has_checkpoints;
  if (on_failure == OnFailure::kContinue) {
    rules.workers.on_failure = FailureRule::kContinue;
    rules.servers.on_failure = FailureRule::kContinue;
  } else if (can_go_on_without_a_worker(job)) {
    rules.workers.on_failure = FailureRule::kContinue;
  }
  return rules;
}

Join parse_join(const std::string& text) {
  const Fields fields = parse_fields(text).value_or(Fields{});
  const auto worker = fields.find("worker");
  const auto at = fields.find("at");
  const bool has_both = fields.size() == 2 && worker != fields.end() && at != fields.end();
  const int number = has_both ? parse_number<int>(worker->second).value_or(-1) : -1;
  if (number < 0 || number > kHighestWorker) {
    throw UsageError("--join " + text + ": expected worker=W,at=TIME, such as worker=4,at=30s");
  }
  return {.worker = number, .at_seconds = parse_seconds(at->second, "--join")};
}

std::string to_string(const Join& join) {
  return fmt::format("worker={},at={:g}s", join.worker, join.at_seconds);
}

int places_of(int workers, const std::vector<Join>& joins) {
  int places = workers;
  for (const Join& join : joins) places = std::max(places, join.worker + 1);
  return places;
}

std::vector<int> late_workers(int workers, const std::vector<Join>& joins) {
  std::vector<int> late;
  for (int worker = 0; worker < places_of(workers, joins); ++worker) {
    if (worker >= workers || joins_later(joins, worker)) late.push_back(worker);
  }
  return late;
}

}  // namespace syncopate
