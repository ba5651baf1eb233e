// Parses the command line of `syncopate train`: its flags, in the groups that --help shows, and the
// rules for their combinations.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "deploy/cli/command_line.h"
#include "deploy/cli/practice_flags.h"
#include "deploy/cli/strategy_flags.h"
#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "worker/checkpoint/folder_lock.h"
#include "worker/input/validation_split.h"

namespace syncopate {
namespace {

// The largest number of epochs. It is far above any real run, and far below the number at which
// steps per epoch times epochs overflow.
constexpr double kMostEpochs = 1e9;
constexpr double kMostSamples = 2147483648.0;  // the largest number of samples in a batch
constexpr double kMostSteps = 1e12;
constexpr double kMostTrainSeconds = 1e6;

// TrainFlags holds the values of flags that are converted later into the form that TrainOptions
// has.
struct TrainFlags {
  TrainOptions options;
  StrategyFlags strategy;
  ConsistencyFlags consistency;
  std::int64_t steps = 0;
  double snapshot_seconds = 10.0;
  std::string milestones;
  bool hides_progress = false;
};

void add_input_flags(FlagSet& flags, TrainFlags& words) {
  TrainOptions& options = words.options;
  add_data_flags(flags, options.model, options.network, options.data, options.cache_dir,
                 options.strategy.seed);
  add_image_flags(flags, options.image, std::to_string(kDefaultImageSize));
  flags.add("--split", &options.split,
            "validation samples out of the training samples, for evaluations during training",
            {.value = "val=FRACTION", .default_text = "none"});
  Names augments;
  for (const AugmentRow& row : kAugments) augments.push_back(row.name);
  flags.add("--augment",
            [&options](const std::string& text) { options.input.augment = augment_named(text); },
            "augmentation (crop-flip: pad by 4, crop, mirror; random-resized-crop: a part of 8 to "
            "100 % of the area, mirror)",
            {.default_text = "none", .choices = augments});
  add_pipeline_flags(flags, options.input, kTunedForPictures);
}

void add_optimizer_flags(FlagSet& flags, TrainFlags& words) {
  OptimizerOptions& optimizer = words.options.strategy.optimizer;
  ScheduleOptions& schedule = words.options.schedule;
  flags.add("--optimizer", &optimizer.name, "update rule", {.choices = names_of(optimizers())});
  flags.add("--learning-rate", &schedule.learning_rate, "learning rate per update",
            {.default_text = "0.001 for adam and adamw, 0.01 for the others",
             .above = 0.0,
             .example = "0.001"});
  flags.add("--momentum", &optimizer.momentum, "momentum of --optimizer momentum");
  flags.add("--nesterov", &optimizer.nesterov, "Nesterov's form of --optimizer momentum");
  flags.add("--weight-decay", &optimizer.weight_decay,
            "factor of the weights that is added to the gradient; with adamw it is subtracted from "
            "the weights");
  flags.add("--beta1", &optimizer.beta1, "decay of the first moment, with adam and adamw");
  flags.add("--beta2", &optimizer.beta2, "decay of the second moment, with adam and adamw");
  flags.add("--epsilon", &optimizer.epsilon, "term of the denominator, with adam and adamw");
  flags.add("--lr-schedule", enum_target(schedule.kind), "learning rate schedule");
  flags.add("--lr-milestones", &words.milestones,
            "epochs at which the learning rate falls, such as 80,120; with --lr-schedule step",
            {.value = "EPOCHS", .default_text = "none"});
  flags.add("--lr-factor", &schedule.factor,
            "factor of the learning rate at each milestone; with --lr-schedule step",
            {.above = 0.0, .example = "0.1"});
  flags.add("--warmup-epochs", &schedule.warmup_epochs,
            "epochs in which the learning rate rises from 0 to --learning-rate", {.least = 0.0});
  flags.add("--learning-rate-scale", enum_target(words.options.learning_rate_scale),
            "factor of --learning-rate: 1, a power of global batch / reference batch, or 1 / "
            "workers");
  flags.add("--reference-batch-size", &words.options.reference_batch_size,
            "batch size that --learning-rate was chosen for, in samples",
            {.default_text = "one replica's batch", .least = 1});
}

void add_schedule_flags(FlagSet& flags, TrainFlags& words) {
  TrainOptions& options = words.options;
  flags.begin_group("Optimizer and schedule");
  flags.add("--epochs", &options.loop.total_epochs,
            "passes over the data; samples that do not fill a batch of all synchronous replicas at "
            "the end of a pass are not trained",
            {.least = 1, .most = kMostEpochs});
  flags.add("--steps", &words.steps, "updates, in place of --epochs",
            {.default_text = "--epochs decides",
             .least = 1,
             .most = kMostSteps,
             .excludes = {"--epochs"}});
  flags.add("--max-seconds", &options.loop.max_seconds,
            "limit of the training time, after which the run is complete; it begins again in a "
            "process that is started again",
            {.unit = "seconds", .default_text = "none", .above = 0.0, .example = "60 or 0.5"});
  flags.add("--batch-size-per-replica", &options.strategy.batch_size_per_replica,
            "samples per replica and step, or micro-batch of --accumulate",
            {.least = 1, .most = kMostSamples});
  flags.add("--batch-size", &options.global_batch_size,
            "samples per step over all replicas, in place of --batch-size-per-replica",
            {.default_text = "the sum over the replicas",
             .least = 1,
             .most = kMostSamples,
             .excludes = {"--batch-size-per-replica"}});
  add_optimizer_flags(flags, words);
}

void add_output_flags(FlagSet& flags, TrainFlags& words) {
  TrainOptions& options = words.options;
  TrainLoopOptions& loop = options.loop;
  flags.begin_group("Checkpoints and output");
  flags.add_config();
  flags.add("--checkpoint-dir", &loop.checkpoint_dir, "folder of the checkpoints",
            {.value = "DIR", .default_text = "nothing is saved"});
  flags.add("--checkpoint-every", &loop.checkpoint_every_steps, "steps between checkpoints",
            {.default_text = "one epoch", .least = 1});
  flags.add("--keep-checkpoints", &loop.keep_checkpoints,
            "number of checkpoints to keep; older ones are removed", {.least = 1});
  flags.add("--resume", &options.resume,
            "start from the newest checkpoint of --checkpoint-dir, if there is one");
  flags.add("--init-from", &options.init_from,
            "checkpoint, folder of checkpoints (the newest one), or safetensors file or index of "
            "several with the weights at step 0, such as torchvision's or timm's for resnet50; "
            "names may have a prefix; layers at the end that do not fit stay fresh; made for "
            "resnet50-v1 by safetensors.numpy.save_file({w.path: keras.ops.convert_to_numpy(w) for "
            "w in keras.applications.ResNet50().weights}, FILE)",
            {.value = "FILE", .default_text = "--seed"});
  flags.add("--eval-every", &loop.eval_every_epochs,
            "epochs between evaluations on the test split, and one at the end; 0: evaluates never",
            {.least = 0});
  flags.add("--eval-every-steps", &loop.eval_every_steps,
            "steps between evaluations, and one at the end; 0: --eval-every decides", {.least = 0});
  flags.add("--eval-when", enum_target(loop.eval_when),
            "time of the evaluations: when they are due, or at the end, from copies in "
            "--checkpoint-dir or $TMPDIR, so that no asynchronous worker stops training for one");
  flags.add("--metrics", &options.metrics, "file of JSON lines: begin, step, eval, summary",
            {.value = "FILE", .default_text = "none"});
  flags.add("--tensorboard", &options.tensorboard,
            "folder of event files for TensorBoard: curves of training and evaluations, and the "
            "confusion matrix of up to 256 classes",
            {.value = "DIR", .default_text = "none"});
  flags.add("--log-every", &loop.log_every_steps,
            "steps between step lines of --metrics and points of --tensorboard", {.least = 1});
  flags.add(
      "--trace", &options.trace,
      "Chrome trace of what each replica and reader does and when, to open in "
      "ui.perfetto.dev or chrome://tracing; 1 to 3 KB a step; that of a killed job is an array "
      "without "
      "its end, which both read; in a job of several tasks each writes its own, with its rank "
      "before the extension, such as t.0.json; an earlier FILE becomes FILE.old",
      {.value = "FILE", .default_text = "none"});
  flags.add("--no-progress", &words.hides_progress, "notes and results only, no progress line");
  flags.add("--snapshot-every", &words.snapshot_seconds,
            "time between the servers' snapshots in --checkpoint-dir, from which a server that is "
            "started again goes on",
            {.unit = "seconds", .least = 0.1, .most = kMostTrainSeconds});
  flags.add("--record", &options.record,
            "file of the order in which servers applied pushes: FILE.shard0, ...",
            {.value = "FILE", .default_text = "none"});
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
      throw UsageError(fmt::format(
          "--lr-milestones {}: expected epochs with commas between, such as 80,120", text));
    }
  }
  return milestones;
}

// Fills the options of train that each flag alone determines.
void take_values(const FlagSet& flags, TrainFlags& words) {
  TrainOptions& options = words.options;
  take_strategy_flags(flags, words.strategy, options);
  tune_encoded(flags, options.data, options.input.autotune);
  take_consistency_flags(words.consistency, options);
  if (flags.has("--steps")) options.loop.total_steps = words.steps;
  options.snapshot_interval =
      std::chrono::milliseconds(std::llround(1000.0 * words.snapshot_seconds));
  options.show_progress = !words.hides_progress;
  if (!options.split.empty()) parse_split(options.split);  // throws for another form
  const OptimizerOptions& optimizer = options.strategy.optimizer;
  make_optimizer(optimizer);  // throws if a constant of the optimizer is out of range
  ScheduleOptions& schedule = options.schedule;
  if (!flags.has("--learning-rate")) {
    schedule.learning_rate = optimizer.name.starts_with("adam") ? 0.001 : 0.01;
  }
  schedule.milestones = parse_milestones(words.milestones);
  if (schedule.kind == ScheduleKind::kStep && schedule.milestones.empty()) {
    throw UsageError("--lr-schedule step requires --lr-milestones EPOCHS, such as 80,120");
  }
}

// Refuses flags that the chosen optimizer or schedule does not use.
void check_optimizer(const FlagSet& flags, const TrainOptions& options) {
  const std::string& optimizer = options.strategy.optimizer.name;
  for (const char* flag : {"--momentum", "--nesterov"}) {
    flags.require(flag, optimizer == "momentum", "--optimizer momentum");
  }
  for (const char* flag : {"--beta1", "--beta2", "--epsilon"}) {
    flags.require(flag, optimizer.starts_with("adam"), "--optimizer adam or adamw");
  }
  for (const char* flag : {"--lr-milestones", "--lr-factor"}) {
    flags.require(flag, options.schedule.kind == ScheduleKind::kStep, "--lr-schedule step");
  }
  const LearningRateScale scale = options.learning_rate_scale;
  const bool scales = scale == LearningRateScale::kLinear || scale == LearningRateScale::kSqrt;
  flags.require("--reference-batch-size", scales, "--learning-rate-scale linear or sqrt");
  if (scales && options.global_batch_size > 0 && !flags.has("--reference-batch-size")) {
    throw UsageError(
        "--learning-rate-scale with --batch-size requires --reference-batch-size: the batch size "
        "that --learning-rate was chosen for");
  }
}

// Returns the path without links and dots; the folders of the file need not exist.
std::filesystem::path place_of(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::weakly_canonical(std::filesystem::absolute(path, ignored), ignored);
}

// Refuses one file for two uses. Several may write one device, such as /dev/null.
void check_files(const TrainOptions& options) {
  namespace fs = std::filesystem;
  const fs::path& folder = options.loop.checkpoint_dir;
  const std::array<std::pair<std::string_view, fs::path>, 3> files = {
      {{"--metrics", options.metrics},
       {"--trace", options.trace},
       {"the lock of --checkpoint-dir",
        folder.empty() ? fs::path() : FolderLock::file_in(folder)}}};
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::error_code ignored;
    const auto& [flag, path] = files.at(i);
    if (path.empty() || (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)))
      continue;
    const fs::path place = place_of(path);
    for (std::size_t j = i + 1; j < files.size(); ++j) {
      const auto& [other, other_path] = files.at(j);
      if (other_path.empty() || place_of(other_path) != place) continue;
      throw UsageError(
          fmt::format("{} and {} write {}; give them different files", flag, other, path.string()));
    }
  }
}

void check_together(const FlagSet& flags, const Environment& environment, TrainFlags& words) {
  TrainOptions& options = words.options;
  const std::optional<std::string> temporary = environment.get("TMPDIR");
  if (temporary && !temporary->empty()) options.loop.temporary_dir = *temporary;
  check_cluster(flags, words.strategy, environment, options);
  check_consistency(flags, options);
  check_optimizer(flags, options);
  check_practice(flags, options);
  check_files(options);
  for (const char* flag : {"--checkpoint-every", "--keep-checkpoints", "--resume"}) {
    flags.require(flag, !options.loop.checkpoint_dir.empty(), "--checkpoint-dir DIR");
  }
}

// Adds all flags of train, in the order in which --help shows the groups.
void add_train_flags(FlagSet& flags, TrainFlags& words) {
  words.options.strategy.optimizer.name = "adam";
  add_input_flags(flags, words);
  add_strategy_flags(flags, words.strategy, words.options);
  add_schedule_flags(flags, words);
  add_practice_flags(flags, words.options);
  add_job_flags(flags, words.strategy);
  add_consistency_flags(flags, words.consistency, words.options);
  add_output_flags(flags, words);
  add_fault_flags(flags, words.strategy.faults);
}

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 failed; 2 wrong usage; 75 stopped by SIGINT, SIGTERM, SIGHUP, SIGUSR1,\n"
    "SIGUSR2 or SIGXCPU after a checkpoint was written: run again with --resume.\n\n";

// Returns the flags of `syncopate train`.
FlagSet named_train_flags(TrainFlags& words) {
  FlagSet flags("syncopate train",
                "Trains a network. Without flags it trains mnist-cnn on digits that it renders "
                "itself.",
                std::string(kExitCodes) +
                    "Examples:\n"
                    "  syncopate train --epochs 1\n"
                    "  syncopate train --model resnet20 --data cifar10:DIR --augment crop-flip "
                    "\\\n"
                    "      --optimizer momentum --learning-rate 0.1 --weight-decay 1e-4 \\\n"
                    "      --lr-schedule step --lr-milestones 80,120 --epochs 164\n"
                    "  syncopate train --checkpoint-dir runs/a --resume --metrics runs/a.jsonl");
  add_train_flags(flags, words);
  return flags;
}

// Returns the flags of a program with a workload of its own.
FlagSet own_train_flags(const OwnWorkload& own, TrainFlags& words) {
  words.options.model.clear();
  words.options.data.clear();
  FlagSet flags(own.program, "Trains the network of this program on the data of this program.",
                fmt::format("{0}Examples:\n"
                            "  {1} --strategy mirrored --replicas 2\n"
                            "  syncopate launch --workers 2 -- "
                            "./{1} --strategy multi-worker-mirrored",
                            kExitCodes, own.program));
  add_train_flags(flags, words);
  for (const char* flag :
       {"--model", "--head", "--normalize", "--data", "--image-size", "--exif",
        "--skip-bad-records", "--cache-mb", "--image-feature", "--label-feature", "--raw-shape"}) {
    flags.refuse(flag, own.program + " has a network and data of its own; leave the flag out");
  }
  if (own.takes_other_flags) flags.skip_unknown();
  return flags;
}

}  // namespace

CommandOptions parse_train(std::span<const std::string> arguments, const Environment& environment,
                           const std::optional<OwnWorkload>& own) {
  TrainFlags words;
  words.options.cache_dir = default_cache_dir(environment);
  FlagSet flags = own ? own_train_flags(*own, words) : named_train_flags(words);
  if (const auto help = flags.parse(arguments)) return TextOptions{*help};
  take_values(flags, words);
  check_together(flags, environment, words);
  words.options.image.cache_dir =
      flags.has("--cache-dir") ? words.options.cache_dir : local_cache_dir(environment);
  return words.options;
}

std::vector<RestFlag> train_rest_flags() {
  TrainFlags words;
  FlagSet flags("syncopate train", "");
  add_train_flags(flags, words);
  std::vector<RestFlag> rest;
  for (const Flag& flag : flags.flags()) rest.push_back({flag.first_name(), flag.is_switch()});
  return rest;
}

TrainOptions parse_shared_train(std::span<const std::string> arguments) {
  TrainFlags words;
  FlagSet flags("syncopate train", "Flags of `syncopate train` that several runs share.");
  add_train_flags(flags, words);
  if (flags.parse(arguments)) {
    throw UsageError("--help belongs to no run; see syncopate train --help");
  }
  take_values(flags, words);
  return words.options;
}

}  // namespace syncopate
