#include "deploy/cli/consistency_flags.h"

#include <fmt/format.h>

#include <array>

#include "models/base/errors.h"

namespace syncopate {
namespace {

constexpr int kMostStaleness = 1'000'000;

constexpr std::array kConsistencies = {Choice{"async", ps::Consistency::kAsync},
                                       Choice{"ssp", ps::Consistency::kSsp},
                                       Choice{"sync", ps::Consistency::kSync}};

constexpr std::array kStalenessRules = {
    Choice{"none", ps::StalenessRule::kNone}, Choice{"inverse", ps::StalenessRule::kInverse},
    Choice{"dc", ps::StalenessRule::kDelayCompensation},
    Choice{"dc-adaptive", ps::StalenessRule::kDelayCompensationAdaptive}};

template <typename Value, std::size_t N>
Names choices_of(const std::array<Choice<Value>, N>& rows) {
  return names_of(std::span<const Choice<Value>>(rows));
}

// `name` has been checked when it was parsed.
template <typename Value, std::size_t N>
Value value_named(const std::array<Choice<Value>, N>& rows, const std::string& name) {
  for (const Choice<Value>& row : rows) {
    if (row.name == name) return row.value;
  }
  throw InternalError("the flag lets only known names through");
}

// Refuses what requires synchronous workers, which alone have a global batch.
void check_asynchronous(const FlagSet& flags, const TrainOptions& options) {
  if (options.deterministic) {
    throw UsageError(
        "--deterministic requires synchronous workers: otherwise timing decides the order of "
        "updates; leave it out, or choose --consistency sync without --backup-workers");
  }
  if (options.global_batch_size > 0) {
    throw UsageError(
        "--batch-size requires synchronous workers: under --consistency async and ssp each worker "
        "applies its own batch; give --batch-size-per-replica");
  }
  const bool scales = options.learning_rate_scale == LearningRateScale::kLinear ||
                      options.learning_rate_scale == LearningRateScale::kSqrt;
  if (scales && !flags.has("--reference-batch-size")) {
    throw UsageError(
        "--learning-rate-scale linear and sqrt: under --consistency async and ssp there is no "
        "global batch; give --reference-batch-size, or choose inverse-workers");
  }
}

}  // namespace

void add_consistency_flags(FlagSet& flags, ConsistencyFlags& words, TrainOptions& options) {
  ps::ConsistencyOptions& consistency = options.strategy.consistency;
  flags.begin_group("Servers and staleness");
  flags.add("--consistency", &words.consistency, "consistency rule of shared variables",
            {.default_text = "async for parameter-server, sync for central-storage",
             .choices = choices_of(kConsistencies)});
  flags.add("--max-staleness", &consistency.max_staleness,
            "steps by which the fastest worker may be ahead of the slowest, with --consistency ssp",
            {.least = 0, .most = kMostStaleness});
  flags.add("--backup-workers", &consistency.backup_workers,
            "gradients of a step that are not waited for and dropped when they arrive, with "
            "--consistency sync",
            {.least = 0});
  flags.add("--staleness-rule", &words.staleness_rule,
            "treatment of stale gradients, with --consistency async and ssp (inverse: rate / "
            "staleness; dc: delay compensation)",
            {.choices = choices_of(kStalenessRules)});
  flags.add("--compress", &words.compress,
            "compression of pushes, with error feedback: none | bf16 | topk:FRACTION",
            {.value = "CODEC"});
  flags.add("--partition", &words.partition,
            "partition of variables over servers: fixed:N | min-size:BYTES | max-size:BYTES",
            {.value = "RULE", .default_text = "large variables are split"});
}

void take_consistency_flags(const ConsistencyFlags& words, TrainOptions& options) {
  auto& servers = options.strategy.parameter_server;
  servers.compression = ps::parse_compression(words.compress, "--compress");
  if (!words.partition.empty()) {
    servers.partition = ps::parse_partition(words.partition, "--partition");
  }
}

void check_consistency(const FlagSet& flags, const ConsistencyFlags& words, TrainOptions& options) {
  const std::string& strategy = options.strategy.name;
  const bool has_servers = strategy == "parameter-server";
  const bool shares = has_servers || strategy == "central-storage";
  for (const char* flag :
       {"--consistency", "--max-staleness", "--backup-workers", "--staleness-rule"}) {
    flags.require(flag, shares, "--strategy parameter-server or central-storage");
  }
  for (const char* flag : {"--compress", "--partition", "--snapshot-every", "--record"}) {
    flags.require(flag, has_servers, "--strategy parameter-server");
  }
  ps::ConsistencyOptions& consistency = options.strategy.consistency;
  if (words.consistency.empty()) {
    consistency.consistency = has_servers ? ps::Consistency::kAsync : ps::Consistency::kSync;
  } else {
    consistency.consistency = value_named(kConsistencies, words.consistency);
  }
  const bool is_sync = consistency.consistency == ps::Consistency::kSync;
  flags.require("--max-staleness", consistency.consistency == ps::Consistency::kSsp,
                "--consistency ssp");
  flags.require("--backup-workers", is_sync, "--consistency sync");
  consistency.staleness_rule = value_named(kStalenessRules, words.staleness_rule);
  if (is_sync && consistency.staleness_rule != ps::StalenessRule::kNone) {
    throw UsageError(fmt::format(
        "--staleness-rule {}: under --consistency sync no gradient is stale; choose async or ssp",
        words.staleness_rule));
  }
  if (consistency.staleness_rule == ps::StalenessRule::kDelayCompensationAdaptive) {
    consistency.compensation = 2.0F;  // the paper's lambda_0
  }
  const int workers = options.cluster.world_size;
  if (has_servers && consistency.backup_workers >= workers) {
    throw UsageError(
        fmt::format("--backup-workers {}: of {} workers at least one must be waited for",
                    consistency.backup_workers, workers));
  }
  if (!is_synchronous(consistency)) check_asynchronous(flags, options);
}

}  // namespace syncopate
