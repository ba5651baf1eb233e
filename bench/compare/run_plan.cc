#include "bench/compare/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/base/errors.h"
#include "ps/shard/stale_gradients.h"
#include "strategies/local_updates/round_report.h"
#include "strategies/strategy.h"
#include "worker/run/run_sizes.h"

namespace syncopate::bench {
namespace {

constexpr std::int64_t kNoEnd = 1'000'000;  // number of epochs if a run ends by time

int places_in(const CompareOptions& options, const Variant& variant) {
  return places_of(variant.workers, options.cluster.faults.joins);
}

bool is_link_flag(const std::string& flag) {
  return flag == "--link-delay" || flag == "--link-rate";
}

// Returns the injected faults as flags, without those for workers and links that the variant lacks.
std::vector<std::string> fault_flags_of(const CompareOptions& options, const Variant& variant) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i + 1 < options.cluster.flags.size(); i += 2) {
    const std::string& flag = options.cluster.flags[i];
    const std::string& word = options.cluster.flags[i + 1];
    if (is_link_flag(flag) && !variant.has_tasks()) continue;
    if (worker_of_fault(flag, word).value_or(0) >= places_in(options, variant)) continue;
    words.insert(words.end(), {flag, word});
  }
  return words;
}

// Refuses delays of a pipeline that train refuses, before the first run.
void check_delays(const CompareOptions& options, const Variant& variant) {
  if (options.clock != Clock::kReal || !variant.has_stages()) return;
  const std::vector<std::string> words = fault_flags_of(options, variant);
  for (std::size_t i = 0; i + 1 < words.size(); i += 2) {
    if (words[i] != "--service-time" && words[i] != "--slow" && words[i] != "--pause") continue;
    throw UsageError(
        fmt::format("{} {}: delays whole steps, and a stage of {} computes parts of them; choose "
                    "--clock virtual, or leave the delay or the variant out",
                    words[i], words[i + 1], variant.label));
  }
}

FaultInjection faults_of(const CompareOptions& options, const Variant& variant) {
  FaultInjection faults = options.cluster.faults;
  const auto is_absent = [&](const auto& one) { return one.worker >= places_in(options, variant); };
  std::erase_if(faults.slow, is_absent);
  std::erase_if(faults.pauses, is_absent);
  std::erase_if(faults.kills, is_absent);
  if (!variant.has_tasks()) faults.link = {};
  // The delay belongs to a step with the batch of the comparison. A step takes time in proportion
  // to its samples; otherwise a larger batch would cost nothing under the virtual clock.
  const double samples = static_cast<double>(worker_batch_of(options, variant)) /
                         static_cast<double>(options.batch_size_per_replica);
  faults.service_time.mean_milliseconds *= samples;
  faults.compute_seconds *= samples;
  return faults;
}

// A scaled learning rate rises from the given one over this number of updates, in a run that is at
// least twice as long. It is no share of the run: the problems that a warm-up prevents arise in the
// first updates of a run of any length, and a share of a long run would only delay training.
constexpr std::int64_t kWarmupUpdates = 20;

// Returns how the learning rate grows with the samples of an update. Sources: linearly for gradient
// descent, Goyal et al. 2017, section 2.1; with the square root for Adam, Krizhevsky 2014, section
// 5, and Malladi et al. 2022.
LearningRateScale scale_for(const OptimizerOptions& optimizer) {
  return optimizer_row(optimizer).has_moments ? LearningRateScale::kSqrt
                                              : LearningRateScale::kLinear;
}

// Returns the samples of a step of train: of all replicas that are summed, or of one worker.
std::int64_t samples_per_step(const TrainOptions& train) {
  return train.strategy.batch_size_per_replica * train.strategy.micro_batches *
         expected_replicas(train);
}

double factor_of(const TrainOptions& train) {
  return learning_rate_factor(train, expected_replicas(train), samples_per_step(train));
}

// Returns the part of an epoch of train that this number of updates takes.
double epochs_of(std::int64_t updates, const TrainOptions& train, std::int64_t train_samples) {
  const std::int64_t step = samples_per_step(train);
  const std::int64_t epoch = std::max(train_samples / step * step, step);
  return static_cast<double>(updates * samples_per_update(train, step)) /
         static_cast<double>(epoch);
}

// Returns the number of updates before the warm-up of a run ends.
std::int64_t warmup_updates_of(const TrainOptions& train, std::int64_t train_samples) {
  constexpr double kRounding = 1e-9;  // of a quotient of updates that is a whole number
  const double updates = train.schedule.warmup_epochs / epochs_of(1, train, train_samples);
  return static_cast<std::int64_t>(std::ceil(updates - kRounding));
}

// Scales the learning rate of a run with the samples of its updates, with a warm-up, unless the
// user chose otherwise. `flags` are all flags of train that the user gave for the run. `updates` is
// the length of the run, or --epochs if the run ends by time. Stores the rule, the factor
// and the length of the warm-up in `run`.
void scale_learning_rate(const CompareOptions& options, const SharedTrainFlags& flags,
                         std::int64_t updates, std::int64_t train_samples, RunSpec& run) {
  TrainOptions& train = run.train;
  const bool has_own_rate = run.variant.has_flag("--learning-rate");
  const bool has_own_scale = run.variant.has_flag("--learning-rate-scale");
  if (has_own_rate && !has_own_scale) {
    train.learning_rate_scale = LearningRateScale::kNone;
  } else if (!flags.has("--learning-rate-scale")) {
    train.learning_rate_scale = scale_for(train.strategy.optimizer);
  }
  const bool is_preset = !options.preset.empty();
  run.learning_rate_rule = run.variant.tuned != Tuned::kNo    ? "tuned"
                           : is_preset && !options.tune.is_on ? "preset"
                           : has_own_rate                     ? "given"
                                          : text_of(train, "--learning-rate-scale");
  run.learning_rate_factor = factor_of(train);
  if (run.learning_rate_factor == 1.0 && train.reference_batch_size == 0) {
    train.learning_rate_scale = LearningRateScale::kNone;  // train scales no rate of one worker
  }
  const bool warms_up = run.learning_rate_factor > 1.0 && !is_preset;
  if (warms_up && !flags.has("--warmup-epochs")) {
    train.schedule.warmup_epochs =
        epochs_of(std::min(kWarmupUpdates, updates / 2), train, train_samples);
  }
  run.warmup_updates = warmup_updates_of(train, train_samples);
}

// Returns the batch from which the learning rate of a variant is scaled; 0 for the batch of one of
// its workers.
std::int64_t reference_of(const CompareOptions& options, const Variant& variant) {
  if (options.batch_size) return *options.batch_size;
  const bool has_own_batch = variant.worker_batch || variant.update_batch;
  return has_own_batch || variant.has_stages() ? options.batch_size_per_replica : 0;
}

TrainOptions train_options_of(const CompareOptions& options, const SharedTrainFlags& flags,
                              const Variant& variant, const FaultInjection& faults,
                              std::uint64_t seed, std::int64_t updates) {
  TrainOptions run = flags.options;
  run.model = options.model;
  run.data = options.data;
  run.hides_progress = true;
  StrategyOptions& strategy = run.strategy;
  set_strategy(variant, strategy);
  strategy.seed = seed;
  strategy.batch_size_per_replica = worker_batch_of(options, variant);
  strategy.lanes = std::max(1, strategy.lanes);
  run.loop.service_time = faults.service_time;
  run.loop.service_time.slow = faults.slow;
  run.loop.service_time.pauses = faults.pauses;
  run.loop.service_time.seed = seed;
  // The virtual clock computes the time of messages, so its runs need no emulated links.
  if (options.clock == Clock::kReal) strategy.link = faults.link;
  if (variant.has_stages()) {
    strategy.stages = variant.workers;
    strategy.micro_batches = variant.micro_batches;
  }
  if (run.reference_batch_size == 0) run.reference_batch_size = reference_of(options, variant);
  if (variant.has_tasks()) {
    run.cluster.world_size = variant.workers;
    run.cluster.num_servers = variant.servers;
  } else if (variant.row().has_replicas()) {
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

// Throws UsageError if the staleness rule of the variant does not fit its optimizer.
void require_fitting_optimizer(const RunSpec& run) {
  try {
    (void)ps::make_shard_optimizer(run.train.strategy.optimizer, run.variant.consistency, 1);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", run.variant.label, error.what()));
  }
}

}  // namespace

void set_strategy(const Variant& variant, StrategyOptions& strategy) {
  strategy.name = variant.strategy;
  strategy.consistency = variant.consistency;
  if (!variant.has_outer_step()) return;
  if (variant.pushes_displacements) strategy.local.push = PushKind::kDisplacement;
  strategy.local.sync_every = variant.sync_every;
  strategy.local.outer = variant.outer;
}

RunSpec plan_run(const CompareOptions& options, const Variant& variant, std::uint64_t seed,
                 std::int64_t train_samples) {
  const SharedTrainFlags flags = add_flags(options.shared, variant.flags, variant.label);
  const std::int64_t updates = updates_of(options, variant, train_samples);
  const FaultInjection faults = faults_of(options, variant);
  RunSpec run{.variant = variant,
              .seed = seed,
              .train = train_options_of(options, flags, variant, faults, seed, updates),
              .faults = faults,
              .fault_flags = fault_flags_of(options, variant),
              .cluster = options.cluster.name};
  require_whole_round(run.train, train_samples, samples_per_step(run.train));
  require_fitting_optimizer(run);
  scale_learning_rate(options, flags, updates, train_samples, run);
  run.refusal = ignored_flag(flags, run.train, variant.label, options.clock == Clock::kVirtual);
  return run;
}

bool has_outer_optimizer(const CompareOptions& options, const Variant& variant) {
  if (!variant.has_outer_step()) return false;
  StrategyOptions strategy =
      add_flags(options.shared, variant.flags, variant.label).options.strategy;
  set_strategy(variant, strategy);
  check_local_updates(strategy);
  return options.tune.outer_learning_rate || needs_displacements(outer_options(strategy.local), 1);
}

std::optional<Variant> control_of(const CompareOptions& options, const Variant& variant) {
  if (!has_outer_optimizer(options, variant) || variant.workers == 1) return std::nullopt;
  Variant control = variant;
  control.label += ", one worker";
  control.workers = 1;
  control.consistency.quorum = 0;  // all workers
  control.consistency.grace = 0.0;
  control.worker_batch = worker_batch_of(options, variant) * variant.workers;
  control.update_batch.reset();
  return control;
}

RunSpec undisturbed(const CompareOptions& options, RunSpec run) {
  const Variant& variant = run.variant;
  const TrainOptions given = add_flags(options.shared, variant.flags, variant.label).options;
  TrainLoopOptions& loop = run.train.loop;
  run.train.hides_progress = given.hides_progress;
  run.train.strategy.seed = given.strategy.seed;
  run.train.strategy.lanes = given.strategy.lanes;
  run.train.strategy.link = given.strategy.link;
  loop.service_time = given.loop.service_time;
  loop.eval_every_steps = given.loop.eval_every_steps;
  loop.eval_when = given.loop.eval_when;
  loop.log_every_steps = given.loop.log_every_steps;
  return run;
}

std::int64_t worker_batch_of(const CompareOptions& options, const Variant& variant) {
  if (variant.worker_batch) return *variant.worker_batch;
  const std::optional<std::int64_t>& of_update =
      variant.update_batch ? variant.update_batch : options.batch_size;
  if (!of_update) return options.batch_size_per_replica;
  const std::int64_t collected = ps::gradients_per_update(variant.consistency);
  const std::int64_t parts = !variant.is_synchronous ? collected
                             : variant.has_stages()  ? variant.micro_batches
                                                     : variant.workers;
  if (*of_update % parts != 0) {
    throw UsageError(
        fmt::format("{}: --batch-size {} cannot be divided among {} {}; give --batch-size {}",
                    variant.label, *of_update, parts,
                    !variant.is_synchronous ? "gradients"
                    : variant.has_stages()  ? "micro-batches"
                                            : "workers",
                    (*of_update / parts + 1) * parts));
  }
  return *of_update / parts;
}

std::int64_t samples_of_update(const CompareOptions& options, const Variant& variant) {
  const std::int64_t batch = worker_batch_of(options, variant);
  if (!variant.is_synchronous) return batch * ps::gradients_per_update(variant.consistency);
  if (variant.has_stages()) return batch * variant.micro_batches;
  return batch * (variant.workers - variant.backup_workers);
}

double momentum_of(const OptimizerOptions& optimizer) {
  return optimizer_row(optimizer).has_momentum ? optimizer.momentum : 0.0;
}

std::string batch_words(const CompareOptions& options) {
  return options.batch_size ? fmt::format("{} samples per update", *options.batch_size)
                            : fmt::format("{} samples per worker", options.batch_size_per_replica);
}

int most_workers(const CompareOptions& options) {
  return std::ranges::max(options.variants, {}, &Variant::workers).workers;
}

int threads_per_worker(const CompareOptions& options) {
  return std::max(1, options.shared.options.strategy.lanes);
}

std::int64_t updates_of(const CompareOptions& options, const Variant& variant,
                        std::int64_t train_samples) {
  const std::int64_t per_epoch = train_samples / samples_of_update(options, variant);
  if (per_epoch == 0) {
    throw UsageError(
        fmt::format("{}: {} samples are fewer than the {} of one of its updates; give a smaller "
                    "--batch-size-per-replica",
                    variant.label, train_samples, samples_of_update(options, variant)));
  }
  return options.budget == Budget::kUpdates ? options.updates : options.epochs * per_epoch;
}

std::vector<RunSpec> plan_runs(const CompareOptions& options, std::int64_t train_samples) {
  std::map<std::string, std::string> labels;  // of the names of the variants' files
  for (const Variant& variant : options.variants) {
    if (variant.backup_workers >= variant.workers) {
      throw UsageError(
          fmt::format("{}: expected fewer backup workers than the {} of --workers; give --workers "
                      "{} or more, or "
                      "leave it out of --strategies",
                      variant.label, variant.workers, variant.backup_workers + 1));
    }
    check_delays(options, variant);
    const auto [other, is_new] = labels.emplace(run_name({.variant = variant}), variant.label);
    if (is_new) continue;
    if (other->second == variant.label) {
      throw UsageError(fmt::format("{} is named twice; name each variant once", variant.label));
    }
    throw UsageError(
        fmt::format("the files of {} and {} would have the same names; write one of "
                    "the variants in another way",
                    other->second, variant.label));
  }
  std::vector<RunSpec> runs;
  for (int seed = 1; seed <= options.seeds; ++seed) {
    for (const Variant& variant : options.variants) {
      runs.push_back(plan_run(options, variant, static_cast<std::uint64_t>(seed), train_samples));
    }
  }
  return runs;
}

}  // namespace syncopate::bench
