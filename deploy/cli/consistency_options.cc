#include "deploy/cli/consistency_options.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cmath>

#include "deploy/cli/flags.h"
#include "models/base/errors.h"
#include "models/base/flag_values.h"

namespace syncopate {
namespace {

constexpr int kMostStaleness = 1'000'000;
constexpr double kLongestInterval = 1e6;

struct ConsistencyRow {
  std::string_view name;
  ps::Consistency consistency;
};
constexpr std::array kConsistencies = {ConsistencyRow{"async", ps::Consistency::kAsync},
                                       ConsistencyRow{"ssp", ps::Consistency::kSsp},
                                       ConsistencyRow{"sync", ps::Consistency::kSync}};

struct StalenessRow {
  std::string_view name;
  ps::StalenessRule rule;
};
constexpr std::array kStalenessRules = {
    StalenessRow{"none", ps::StalenessRule::kNone},
    StalenessRow{"inverse", ps::StalenessRule::kInverse},
    StalenessRow{"dc", ps::StalenessRule::kDelayCompensation},
    StalenessRow{"dc-adaptive", ps::StalenessRule::kDelayCompensationAdaptive}};

template <typename Row, std::size_t N>
const Row& row_of(const std::array<Row, N>& rows, std::string_view flag, const std::string& name) {
  const std::span<const Row> all(rows);
  require_name(flag, name, names_of(all));
  for (const Row& row : rows) {
    if (row.name == name) return row;
  }
  throw InternalError("require_name lets only known names through");
}

}  // namespace

void add_consistency_flags(CLI::App& app, ConsistencyFlags& flags, TrainOptions& options) {
  const std::string group = "Shared variables";
  ps::ConsistencyOptions& consistency = options.strategy.consistency;
  app.add_option("--consistency", flags.consistency,
                 "async (nobody waits) | ssp (nobody gets far ahead) | sync; default: async for "
                 "parameter-server, sync for central-storage")
      ->group(group);
  app.add_option("--max-staleness", consistency.max_staleness,
                 "ssp: steps that the fastest may be ahead of the slowest; 0 is not sync, since "
                 "pushes are applied one by one")
      ->capture_default_str()
      ->group(group);
  app.add_option("--backup-workers", consistency.backup_workers,
                 "sync: gradients of a step that are not waited for, and dropped when they come")
      ->capture_default_str()
      ->group(group);
  app.add_option("--staleness-rule", flags.staleness_rule,
                 "async, ssp: none | inverse (rate / staleness) | dc (delay compensation) | "
                 "dc-adaptive")
      ->capture_default_str()
      ->group(group);
  app.add_option("--compress", flags.compress,
                 "of pushes: none | bf16 | topk:FRACTION, with error feedback")
      ->capture_default_str()
      ->group(group);
  app.add_option("--partition", flags.partition,
                 "variables over servers: fixed:N | min-size:BYTES | max-size:BYTES; default: "
                 "large ones are split")
      ->group(group);
  app.add_option("--snapshot-every", flags.snapshot_every,
                 "seconds between the servers' snapshots in --checkpoint-dir, from which one that "
                 "is started anew goes on")
      ->capture_default_str()
      ->group(group);
  app.add_option("--record", options.record,
                 "FILE for the order in which servers applied pushes: FILE.shard0, ...")
      ->group(group);
}

namespace {

// What has no meaning where timing decides who updates next, and with how many samples.
void check_without_step(const CLI::App& app, const TrainOptions& options) {
  if (options.deterministic) {
    throw UsageError(
        "--deterministic: timing decides the order of updates where workers keep no step; leave it "
        "out, or choose --consistency sync without --backup-workers");
  }
  const bool scales = options.learning_rate_scale == LearningRateScale::kLinear ||
                      options.learning_rate_scale == LearningRateScale::kSqrt;
  if (scales && app.count("--reference-batch-size") == 0) {
    throw UsageError(
        "--learning-rate-scale linear and sqrt: workers that keep no step have no global batch; "
        "give "
        "--reference-batch-size, or choose inverse-workers");
  }
}

}  // namespace

void take_consistency_values(const ConsistencyFlags& flags, TrainOptions& options) {
  options.strategy.parameter_server.compression =
      ps::parse_compression(flags.compress, "--compress");
  if (!flags.partition.empty()) {
    options.strategy.parameter_server.partition =
        ps::parse_partition(flags.partition, "--partition");
  }
}

void check_consistency(const CLI::App& app, const ConsistencyFlags& flags, TrainOptions& options) {
  const std::string& strategy = options.strategy.name;
  const bool has_servers = strategy == "parameter-server";
  const bool shares = has_servers || strategy == "central-storage";
  for (const char* flag :
       {"--consistency", "--max-staleness", "--backup-workers", "--staleness-rule"}) {
    require_used(app, flag, shares,
                 "it belongs to --strategy parameter-server and central-storage");
  }
  for (const char* flag : {"--compress", "--partition", "--snapshot-every", "--record"}) {
    require_used(app, flag, has_servers, "it belongs to --strategy parameter-server");
  }
  ps::ConsistencyOptions& consistency = options.strategy.consistency;
  if (flags.consistency.empty()) {
    consistency.consistency = has_servers ? ps::Consistency::kAsync : ps::Consistency::kSync;
  } else {
    consistency.consistency =
        row_of(kConsistencies, "--consistency", flags.consistency).consistency;
  }
  const bool is_sync = consistency.consistency == ps::Consistency::kSync;
  require_used(app, "--max-staleness", consistency.consistency == ps::Consistency::kSsp,
               "it belongs to --consistency ssp");
  require_between("--max-staleness", consistency.max_staleness, 0, kMostStaleness);
  require_used(app, "--backup-workers", is_sync, "it belongs to --consistency sync");
  require_at_least("--backup-workers", consistency.backup_workers, 0);
  consistency.staleness_rule =
      row_of(kStalenessRules, "--staleness-rule", flags.staleness_rule).rule;
  if (is_sync && consistency.staleness_rule != ps::StalenessRule::kNone) {
    throw UsageError("--staleness-rule " + flags.staleness_rule +
                     ": under --consistency sync no gradient is stale; choose async or ssp");
  }
  if (consistency.staleness_rule == ps::StalenessRule::kDelayCompensationAdaptive) {
    consistency.compensation = 2.0F;  // the paper's lambda_0
  }
  if (!std::isfinite(flags.snapshot_every) || flags.snapshot_every < 0.1 ||
      flags.snapshot_every > kLongestInterval) {
    throw UsageError("--snapshot-every " + shortest_text(flags.snapshot_every) +
                     ": expected seconds, from 0.1 to 1000000");
  }
  options.snapshot_interval =
      std::chrono::milliseconds(std::llround(1000.0 * flags.snapshot_every));
  const int workers = options.cluster.world_size;
  if (has_servers && consistency.backup_workers >= workers) {
    throw UsageError("--backup-workers " + std::to_string(consistency.backup_workers) + ": of " +
                     std::to_string(workers) + " workers at least one must be waited for");
  }
  if (!keeps_step(consistency) && options.global_batch_size > 0) {
    throw UsageError(
        "--batch-size: workers that keep no step update each for itself; give "
        "--batch-size-per-replica");
  }
  if (!keeps_step(consistency)) check_without_step(app, options);
}

}  // namespace syncopate
