// The flags of `syncopate train`, in the groups that --help shows, and what must hold between them.
#include "deploy/cli/train_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <sstream>

#include "deploy/cli/consistency_options.h"
#include "deploy/cli/device_options.h"
#include "deploy/cli/flags.h"
#include "deploy/cli/train_cluster_options.h"
#include "models/base/errors.h"
#include "models/zoo/zoo.h"

namespace syncopate {
namespace {

// Flags and names that a script may already use; what they ask for is still to come.
Names flags_not_yet() { return {"--tensorboard", "--trace", "--image-size"}; }

// Far above any real run, far below where steps per epoch times epochs overflow.
constexpr std::int64_t kMostEpochs = 1'000'000'000;
constexpr std::int64_t kMostSamples = std::int64_t{1} << 31;  // of a batch
constexpr std::int64_t kMostSteps = 1'000'000'000'000;

// What the flags of `train` fill before it becomes TrainOptions.
struct TrainFlags {
  TrainOptions options;
  TrainClusterFlags cluster;
  ConsistencyFlags consistency;
  DeviceFlags devices;
  std::int64_t steps = 0;
  std::int64_t bucket_mib = 8;
  std::string augment = "none";
  std::string eval_when = "due";
  std::string schedule = "constant";
  std::string milestones;
  bool no_progress = false;
};

void add_run_flags(CLI::App& app, TrainFlags& flags) {
  TrainOptions& options = flags.options;
  app.add_option("--strategy", options.strategy.name,
                 help_of("how replicas agree", names_of(strategies())))
      ->capture_default_str()
      ->group("Where");
  add_device_flags(app, flags.devices);
  app.add_option("--threads", options.strategy.lanes,
                 "compute lanes per replica, part of what makes runs equal bit for bit; default: "
                 "the CPUs, shared out")
      ->group("Where");
  app.add_option("--input-threads", options.input.threads,
                 "threads that read and augment; never show in results")
      ->capture_default_str()
      ->group("Where");
  app.add_option("--prefetch", options.input.prefetch, "batches ready ahead")
      ->capture_default_str()
      ->group("Where");
  app.add_option("--bucket-mb", flags.bucket_mib, "MiB of gradients that travel together")
      ->capture_default_str()
      ->group("Where");
  app.add_flag("--deterministic", options.deterministic,
               "the same bits every time; on the CPU every run in step is")
      ->group("Where");
  const std::string group = "How long";
  auto* local = app.add_option("--batch-size-per-replica", options.strategy.batch_size_per_replica,
                               "samples per replica and step")
                    ->capture_default_str()
                    ->group(group);
  app.add_option("--batch-size", options.global_batch_size,
                 "samples per step over all replicas, instead")
      ->excludes(local)
      ->group(group);
  auto* epochs = app.add_option("--epochs", options.loop.total_epochs, "passes over the data")
                     ->capture_default_str()
                     ->group(group);
  app.add_option("--steps", flags.steps, "updates, instead of --epochs")
      ->excludes(epochs)
      ->group(group);
  app.add_option(
         "--max-seconds", options.loop.max_seconds,
         "of training, after which it is complete, whatever is left of --epochs or --steps; a "
         "process that is started again begins to count anew")
      ->group(group);
  app.add_option("--eval-every", options.loop.eval_every_epochs,
                 "epochs between evaluations on the test split; 0: at the end only")
      ->capture_default_str()
      ->group(group);
  app.add_option("--eval-every-steps", options.loop.eval_every_steps,
                 "updates between evaluations; 0: --eval-every decides")
      ->capture_default_str()
      ->group(group);
  app.add_option("--eval-when", flags.eval_when,
                 "due | end: at once, or copies are kept and evaluated when training has ended, so "
                 "that no worker stops training for it; matters where workers keep no step. Copies "
                 "lie in --checkpoint-dir, or without it in $TMPDIR")
      ->capture_default_str()
      ->group(group);
  app.add_option("--augment", flags.augment, "none | crop-flip (pad 4, crop, mirror)")
      ->capture_default_str()
      ->group(group);
}

void add_optimizer_flags(CLI::App& app, TrainFlags& flags) {
  OptimizerOptions& optimizer = flags.options.strategy.optimizer;
  ScheduleOptions& schedule = flags.options.schedule;
  const std::string group = "Optimizer";
  app.add_option("--optimizer", optimizer.name, help_of("update rule", names_of(optimizers())))
      ->capture_default_str()
      ->group(group);
  app.add_option("--learning-rate", schedule.learning_rate,
                 "default: 0.001 for adam and adamw, 0.01 for the others")
      ->group(group);
  app.add_option("--momentum", optimizer.momentum, "of momentum")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--nesterov", optimizer.nesterov, "momentum looks ahead")->group(group);
  app.add_option("--weight-decay", optimizer.weight_decay,
                 "added to the gradient; adamw: taken from the value")
      ->capture_default_str()
      ->group(group);
  app.add_option("--beta1", optimizer.beta1, "of adam, adamw")->capture_default_str()->group(group);
  app.add_option("--beta2", optimizer.beta2, "of adam, adamw")->capture_default_str()->group(group);
  app.add_option("--epsilon", optimizer.epsilon, "of adam, adamw")
      ->capture_default_str()
      ->group(group);
  app.add_option("--lr-schedule", flags.schedule, "constant | step | cosine")
      ->capture_default_str()
      ->group(group);
  app.add_option("--lr-milestones", flags.milestones,
                 "step: epochs at which the rate falls, as 80,120")
      ->group(group);
  app.add_option("--lr-factor", schedule.factor, "step: what it is multiplied by")
      ->capture_default_str()
      ->group(group);
  app.add_option("--warmup-epochs", schedule.warmup_epochs, "linear, to the learning rate")
      ->capture_default_str()
      ->group(group);
}

void add_output_flags(CLI::App& app, TrainFlags& flags) {
  TrainOptions& options = flags.options;
  const std::string group = "What is kept and shown";
  app.add_option("--checkpoint-dir", options.loop.checkpoint_dir,
                 "folder; without it nothing is saved")
      ->group(group);
  app.add_option("--checkpoint-every", options.loop.checkpoint_every_steps,
                 "steps between checkpoints; default: each epoch")
      ->group(group);
  app.add_option("--keep-checkpoints", options.loop.keep_checkpoints, "the newest so many")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--resume", options.resume,
               "go on from the newest checkpoint of the folder, if it has one")
      ->group(group);
  app.add_option("--init-from", options.init_from, "start from a checkpoint's weights, at step 0")
      ->group(group);
  app.add_option("--metrics", options.metrics, "JSON lines: step, eval, summary")->group(group);
  app.add_option("--log-every", options.loop.log_every_steps, "steps between lines of metrics")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--no-progress", flags.no_progress, "notes and results only")->group(group);
}

std::string shown(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

std::vector<double> parse_milestones(const std::string& text) {
  std::vector<double> milestones;
  std::istringstream items(text);
  for (std::string item; std::getline(items, item, ',');) {
    std::size_t used = 0;
    try {
      milestones.push_back(std::stod(item, &used));
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != item.size()) {
      throw UsageError("--lr-milestones " + text +
                       ": expected epochs with commas between, such as 80,120");
    }
  }
  return milestones;
}

// Flags that the chosen optimizer or schedule ignores.
void check_optimizer_uses(const CLI::App& app, const TrainOptions& options) {
  const std::string& optimizer = options.strategy.optimizer.name;
  for (const char* flag : {"--momentum", "--nesterov"}) {
    require_used(app, flag, optimizer == "momentum", "it belongs to --optimizer momentum");
  }
  for (const char* flag : {"--beta1", "--beta2", "--epsilon"}) {
    require_used(app, flag, optimizer.starts_with("adam"),
                 "it belongs to --optimizer adam or adamw");
  }
  const bool in_steps = options.schedule.kind == ScheduleKind::kStep;
  for (const char* flag : {"--lr-milestones", "--lr-factor"}) {
    require_used(app, flag, in_steps, "it belongs to --lr-schedule step");
  }
}

void take_optimizer_flags(const CLI::App& app, TrainFlags& flags) {
  OptimizerOptions& optimizer = flags.options.strategy.optimizer;
  ScheduleOptions& schedule = flags.options.schedule;
  require_name("--optimizer", optimizer.name, names_of(optimizers()));
  const bool is_adam = optimizer.name.rfind("adam", 0) == 0;
  schedule.kind = parse_schedule(flags.schedule);
  make_optimizer(optimizer);  // throws for a constant out of range

  if (app.count("--learning-rate") == 0) schedule.learning_rate = is_adam ? 0.001 : 0.01;
  if (!std::isfinite(schedule.learning_rate) || schedule.learning_rate <= 0.0) {
    throw UsageError("--learning-rate " + shown(schedule.learning_rate) +
                     ": expected a finite number above 0, such as 0.001");
  }
  if (!std::isfinite(schedule.warmup_epochs) || schedule.warmup_epochs < 0.0) {
    throw UsageError("--warmup-epochs " + shown(schedule.warmup_epochs) +
                     ": expected epochs, at least 0");
  }
  if (!std::isfinite(schedule.factor) || schedule.factor <= 0.0) {
    throw UsageError("--lr-factor " + shown(schedule.factor) +
                     ": expected a finite number above 0, such as 0.1");
  }
  schedule.milestones = parse_milestones(flags.milestones);
  if (schedule.kind == ScheduleKind::kStep && schedule.milestones.empty()) {
    throw UsageError("--lr-schedule step: at which epochs? Give --lr-milestones, such as 80,120");
  }
}

// Each flag's value, whatever the others say.
void take_values(const CLI::App& app, TrainFlags& flags) {
  TrainOptions& options = flags.options;
  require_name("--model", options.model, names_of(networks()), {"vgg16", "fcn"});
  take_device_flags(flags.devices, options);
  if (app.count("--batch-size") > 0) {
    require_between("--batch-size", options.global_batch_size, 1, kMostSamples);
  }
  require_between("--batch-size-per-replica", options.strategy.batch_size_per_replica, 1,
                  kMostSamples);
  require_between("--epochs", options.loop.total_epochs, 1, kMostEpochs);
  if (app.count("--steps") > 0) {
    require_between("--steps", flags.steps, 1, kMostSteps);
    options.loop.total_steps = flags.steps;
  }
  const double max_seconds = options.loop.max_seconds;
  if (app.count("--max-seconds") > 0 && (!std::isfinite(max_seconds) || max_seconds <= 0.0)) {
    throw UsageError("--max-seconds: expected seconds above 0, such as 60 or 0.5");
  }
  require_at_least("--eval-every", options.loop.eval_every_epochs, 0);
  require_at_least("--eval-every-steps", options.loop.eval_every_steps, 0);
  require_name("--eval-when", flags.eval_when, {"due", "end"});
  options.loop.eval_when = flags.eval_when == "end" ? EvalWhen::kEnd : EvalWhen::kDue;
  require_at_least("--log-every", options.loop.log_every_steps, 1);
  take_cluster_values(app, flags.cluster, options);
  take_consistency_values(flags.consistency, options);
  if (app.count("--threads") > 0) require_threads("--threads", options.strategy.lanes);
  require_threads("--input-threads", options.input.threads);
  require_threads("--prefetch", options.input.prefetch);
  require_at_least("--bucket-mb", flags.bucket_mib, 1);
  options.strategy.bucket_bytes = std::min<std::int64_t>(flags.bucket_mib, 1 << 20) << 20;
  take_optimizer_flags(app, flags);
  if (flags.augment != "none" && flags.augment != "crop-flip") {
    throw UsageError("--augment " + flags.augment + ": no such name" +
                     suggest(flags.augment, {"none", "crop-flip"}));
  }
  options.show_progress = !flags.no_progress;
  options.input.augment = flags.augment == "none" ? Augment::kNone : Augment::kCropFlip;
  if (app.count("--checkpoint-every") > 0) {
    require_at_least("--checkpoint-every", options.loop.checkpoint_every_steps, 1);
  }
  require_at_least("--keep-checkpoints", options.loop.keep_checkpoints, 1);
  for (const char* flag : {"--checkpoint-dir", "--init-from", "--metrics", "--record"}) {
    require_not_empty(app, flag);
  }
}

// What the values mean together, and in this environment.
void check_together(const CLI::App& app, const Environment& environment, TrainFlags& flags) {
  TrainOptions& options = flags.options;
  const std::optional<std::string> temporary = environment.get("TMPDIR");
  if (temporary && !temporary->empty()) options.loop.temporary_dir = *temporary;
  check_cluster(app, flags.cluster, environment, options);
  check_consistency(app, flags.consistency, options);
  check_optimizer_uses(app, options);
  for (const char* flag : {"--checkpoint-every", "--keep-checkpoints", "--resume"}) {
    require_used(app, flag, !options.loop.checkpoint_dir.empty(),
                 "which folder? Give --checkpoint-dir");
  }
}

// Declares the flags of train.
void add_train_flags(CLI::App& app, TrainFlags& flags) {
  TrainOptions& options = flags.options;
  options.strategy.optimizer.name = "adam";
  app.set_config("--config", "", "file of flags: a line is NAME = VALUE, without the dashes");
  add_data_flags(app, options.model, options.data, options.cache_dir, options.strategy.seed);
  add_run_flags(app, flags);
  add_train_cluster_flags(app, flags.cluster, options);
  add_consistency_flags(app, flags.consistency, options);
  add_optimizer_flags(app, flags);
  add_output_flags(app, flags);
}

}  // namespace

CommandOptions parse_train_options(std::span<const std::string> arguments,
                                   const Environment& environment) {
  TrainFlags flags;
  flags.options.cache_dir = default_cache_dir(environment);
  CLI::App app(
      "Trains a network. Alone, `syncopate train` trains mnist-cnn on the digits it draws itself.",
      "syncopate train");
  add_train_flags(app, flags);
  app.footer(
      "\nExit codes: 0 done; 1 failed; 2 wrong usage; 75 stopped by SIGINT, SIGTERM or SIGUSR1 "
      "after a\n"
      "checkpoint was written: run again with --resume.\n\n"
      "Examples:\n"
      "  syncopate train --epochs 1\n"
      "  syncopate train --model resnet20 --data cifar10:DIR --augment crop-flip --optimizer "
      "momentum \\\n"
      "      --learning-rate 0.1 --weight-decay 1e-4 --lr-schedule step --lr-milestones 80,120 "
      "--epochs 164\n"
      "  syncopate train --checkpoint-dir runs/a --resume --metrics runs/a.jsonl");
  if (const auto help = parse_flags(app, arguments, flags_not_yet())) return TextOptions{*help};
  require_name("--strategy", flags.options.strategy.name, names_of(strategies()));
  take_values(app, flags);
  check_together(app, environment, flags);
  return flags.options;
}

TrainOptions parse_shared_train_options(std::span<const std::string> arguments) {
  TrainFlags flags;
  CLI::App app("Flags of `syncopate train` that several runs share.", "syncopate train");
  add_train_flags(app, flags);
  if (parse_flags(app, arguments, flags_not_yet())) {
    throw UsageError("--help is no flag of a run; see syncopate train --help");
  }
  take_values(app, flags);
  return flags.options;
}

}  // namespace syncopate
