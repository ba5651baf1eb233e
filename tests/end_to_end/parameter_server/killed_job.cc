#include "tests/end_to_end/parameter_server/killed_job.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/end_to_end/parameter_server/order_history.h"
#include "tests/end_to_end/support/metrics_lines.h"
#include "tests/support/as_words.h"

namespace syncopate::test {
namespace {

constexpr int kKilledJobWorkers = 3;

constexpr int kStepsOfRound = 4;

bool has_backup(const KilledJob& job) { return std::string(job.rule) == "backup"; }
bool has_rounds(const KilledJob& job) { return std::string(job.rule).ends_with("_rounds"); }

bool merges(const KilledJob& job) { return std::string(job.rule).starts_with("quorum"); }

bool delays_momentum(const KilledJob& job) { return std::string(job.rule) == "delayed_rounds"; }

// Returns the value of --consistency.
std::string consistency_of(const KilledJob& job) {
  const std::string rule = job.rule;
  if (delays_momentum(job)) return "async";
  if (has_rounds(job)) return rule.substr(0, rule.find('_'));
  if (rule == "backup") return "sync";
  return rule == "ssp" || rule == "sync" ? rule : "async";
}

// Returns the value of --staleness-rule.
std::string staleness_rule_of(const KilledJob& job) {
  const std::string rule = job.rule;
  if (rule == "ringmaster") return "ringmaster:2";
  return rule == "rennala" ? "rennala:2" : "none";
}

}  // namespace

std::vector<std::string> KilledJob::command(const TemporaryFolder& folder) const {
  std::vector<std::string> words = as_words(
      "launch --workers 3 --servers", merges(*this) ? "1" : "2",
      "--restart 1000 -- train --strategy parameter-server --model "
      "mlp --data synthetic:1x28x28:10:2400 --threads 1 --no-progress --eval-every 0 --log-every 1 "
      "--service-time constant:5 --steps",
      std::to_string(steps), "--metrics", folder / "m.jsonl", "--record", folder / "order",
      "--checkpoint-dir", folder / "ck", "--snapshot-every", snapshot_every, "--staleness-rule",
      staleness_rule_of(*this), "--consistency", consistency_of(*this));
  if (has_rounds(*this)) {
    words = words + as_words("--push displacement --sync-every", std::to_string(kStepsOfRound));
  }
  if (delays_momentum(*this)) words = words + as_words("--outer delayed-nesterov:4");
  if (merges(*this)) words = words + as_words("--quorum 2 --grace 0.02");
  if (has_backup(*this)) words = words + std::vector<std::string>{"--backup-workers", "1"};
  return syncopate_command(words);
}

void expect_ended_exactly(const KilledJob& job, const TemporaryFolder& folder,
                          const ProgramResult& result, const Kills& kills) {
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json summary = summary_of(folder / "m.jsonl");
  EXPECT_EQ(summary.at("steps"), job.steps) << result.err;
  EXPECT_EQ(summary.at("samples"), job.steps * summary.at("global_batch").get<int>());
  const int repeated = summary.at("repeated_batches");
  EXPECT_LE(repeated, job.is_synchronous() ? 0 : kills.workers);
  for (int shard = 0; shard < (merges(job) ? 1 : 2); ++shard) {
    // With a backup worker or a quorum, an update has fewer pushes while a worker is away.
    const bool varies = has_backup(job) || merges(job);
    const int pushes = varies ? 0 : (job.is_synchronous() ? kKilledJobWorkers : 1);
    expect_every_push_once(history_of(folder / "order", shard), pushes);
  }
  if (job.is_synchronous()) return;
  const bool has_pairs = has_backup(job) || staleness_rule_of(job) == "rennala:2";
  const int batches_per_step = has_pairs ? kKilledJobWorkers - 1 : 1;
  const std::vector<int> batches = batches_in(history_of(folder / "order", 0));
  EXPECT_EQ(batches.size(), static_cast<std::size_t>(job.steps * batches_per_step));
  int repeats = 0;
  for (const int times : batches) repeats += times - 1;
  const int most_pushes = kills.servers == 0 ? repeated : kills.workers;
  EXPECT_LE(repeats, most_pushes * (has_rounds(job) ? kStepsOfRound : 1))
      << "batches are in the values twice\n"
      << result.err;
}

}  // namespace syncopate::test
