#include "bench/compare/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr std::int64_t kNoEnd = 1'000'000;  // number of epochs if a run ends by time

std::int64_t samples_per_update(const CompareOptions& options, const Variant& variant) {
  if (!variant.is_synchronous) return options.batch_size_per_replica;
  return options.batch_size_per_replica * (variant.workers - variant.backup_workers);
}

int places_in(const CompareOptions& options, const Variant& variant) {
  return places_of(variant.workers, options.faults.joins);
}

bool is_link_flag(const std::string& flag) {
  return flag == "--link-delay" || flag == "--link-rate";
}

// Returns the injected faults as flags, without those for workers and links that the variant lacks.
std::vector<std::string> fault_flags_of(const CompareOptions& options, const Variant& variant) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i + 1 < options.fault_flags.size(); i += 2) {
    const std::string& flag = options.fault_flags[i];
    const std::string& word = options.fault_flags[i + 1];
    if (is_link_flag(flag) && !variant.has_tasks()) continue;
    if (worker_of_fault(flag, word).value_or(0) >= places_in(options, variant)) continue;
    words.insert(words.end(), {flag, word});
  }
  return words;
}

FaultInjection faults_of(const CompareOptions& options, const Variant& variant) {
  FaultInjection faults = options.faults;
  const auto is_absent = [&](const auto& one) { return one.worker >= places_in(options, variant); };
  std::erase_if(faults.slow, is_absent);
  std::erase_if(faults.pauses, is_absent);
  std::erase_if(faults.kills, is_absent);
  if (!variant.has_tasks()) faults.link = {};
  return faults;
}

// Whether the learning rate is to grow with the batch of all workers, but the variant has no such
// batch, and the user did not give the batch that the rate was chosen for.
bool has_no_batch_to_scale_by(const CompareOptions& options, const Variant& variant) {
  const TrainOptions& shared = options.shared.options;
  const bool is_synchronous = variant.is_synchronous && variant.backup_workers == 0;
  const bool scales = shared.learning_rate_scale == LearningRateScale::kLinear ||
                      shared.learning_rate_scale == LearningRateScale::kSqrt;
  return scales && !is_synchronous && shared.reference_batch_size == 0;
}

TrainOptions train_options_of(const CompareOptions& options, const Variant& variant,
                              const FaultInjection& faults, std::uint64_t seed,
                              std::int64_t updates) {
  TrainOptions run = options.shared.options;
  run.model = options.model;
  run.data = options.data;
  run.show_progress = false;
  StrategyOptions& strategy = run.strategy;
  strategy.name = variant.strategy;
  strategy.consistency = variant.consistency;
  strategy.seed = seed;
  strategy.batch_size_per_replica = options.batch_size_per_replica;
  strategy.lanes = threads_per_worker(options);
  if (has_no_batch_to_scale_by(options, variant)) {
    run.reference_batch_size = options.batch_size_per_replica;  // scales the rate by 1
  }
  run.loop.service_time = faults.service_time;
  run.loop.service_time.slow = faults.slow;
  run.loop.service_time.pauses = faults.pauses;
  run.loop.service_time.seed = seed;
  // The virtual clock computes the time of messages, so its runs need no emulated links.
  if (options.clock == Clock::kReal) strategy.link = faults.link;
  if (variant.adjust) variant.adjust(run);
  if (variant.has_tasks()) {
    run.cluster.world_size = variant.workers;
    run.cluster.num_servers = variant.servers;
  } else if (variant.strategy != "one-device") {
    strategy.replicas = variant.workers;
    run.shares_devices = true;
  }
  switch (options.budget) {
    case Budget::kSamples:
      run.loop.total_epochs = options.epochs;
      break;
    case Budget::kUpdates:
      run.loop.total_steps = updates;
      break;
    case Budget::kSeconds:
      run.loop.max_seconds = options.seconds;
      run.loop.total_epochs = kNoEnd;
      break;
  }
  run.loop.eval_every_steps = std::max<std::int64_t>(1, updates / options.evaluations);
  run.loop.log_every_steps = run.loop.eval_every_steps;
  // Evaluating during a real run would stop a training worker in some variants only. So real runs
  // evaluate after training.
  if (options.clock == Clock::kReal) run.loop.eval_when = EvalWhen::kEnd;
  return run;
}

RunSpec run_of(const CompareOptions& options, const Variant& variant, std::uint64_t seed,
               std::int64_t updates) {
  const FaultInjection faults = faults_of(options, variant);
  const TrainOptions train = train_options_of(options, variant, faults, seed, updates);
  RunSpec run{.variant = variant,
              .seed = seed,
              .train = train,
              .refusal = ignored_flag(options.shared, train, variant.label),
              .faults = faults,
              .fault_flags = fault_flags_of(options, variant)};
  if (has_no_batch_to_scale_by(options, variant)) {
    run.notes.emplace_back(
        "--learning-rate-scale has no effect on this variant: its updates take the batch of one "
        "worker");
  }
  return run;
}

}  // namespace

int threads_per_worker(const CompareOptions& options) {
  return std::max(1, options.shared.options.strategy.lanes);
}

std::int64_t updates_of(const CompareOptions& options, const Variant& variant,
                        std::int64_t train_samples) {
  if (options.budget == Budget::kUpdates) return options.updates;
  const std::int64_t per_epoch = train_samples / samples_per_update(options, variant);
  if (per_epoch == 0) {
    throw UsageError(
        fmt::format("{}: {} samples are fewer than one step of all its workers; give a smaller "
                    "--batch-size-per-replica",
                    variant.label, train_samples));
  }
  return options.epochs * per_epoch;
}

std::vector<RunSpec> plan_runs(const CompareOptions& options, std::int64_t train_samples) {
  std::set<std::string> labels;
  for (const Variant& variant : options.variants) {
    if (variant.backup_workers >= variant.workers) {
      throw UsageError(
          fmt::format("{}: expected fewer backup workers than the {} of --workers; give --workers "
                      "{} or more, or "
                      "leave it out of --strategies",
                      variant.label, variant.workers, variant.backup_workers + 1));
    }
    if (!labels.insert(variant.label).second) {
      throw UsageError(fmt::format("{} is named twice; name each variant once", variant.label));
    }
  }
  std::vector<RunSpec> runs;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    for (const Variant& variant : options.variants) {
      const std::int64_t updates = updates_of(options, variant, train_samples);
      runs.push_back(run_of(options, variant, static_cast<std::uint64_t>(seed), updates));
    }
  }
  return runs;
}

}  // namespace syncopate::bench
