// Parses the command line of `syncopate train`: its flags, in the groups that --help shows, and the
// rules for their combinations.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "deploy/cli/command_line.h"
#include "deploy/cli/strategy_flags.h"
#include "models/base/errors.h"
#include "models/zoo/zoo.h"
#include "worker/checkpoint/folder_lock.h"
#include "worker/input/dataset.h"
#include "worker/run/flags/train_flag.h"
#include "worker/run/run_devices.h"

namespace syncopate {
namespace {

using Subject = TrainFlag::Subject;

// TrainFlags holds the options of train, and the flags that place the task in its cluster.
struct TrainFlags {
  TrainOptions options;
  ClusterFlags cluster;
};

void add_flag(FlagSet& flags, const TrainFlag& flag, TrainOptions& options,
              const std::string& default_text) {
  FlagRules rules = flag.rules;
  if (flag.has_recorded_default && !default_text.empty()) rules.default_text = default_text;
  flags.add(flag.name, flag.field(options), flag.help, std::move(rules));
}

// Fills the options of train that each flag alone determines.
void take_values(const FlagSet& flags, TrainOptions& options) {
  complete_devices(options);
  options.takes_every_device = options.strategy.devices.front().kind == DeviceKind::kCuda &&
                               !flags.has("--replicas") &&
                               strategy_of(options).has_replicas_of_one_task();
  if (flags.has("--data")) require_data_name(options.data);
  tune_encoded(flags, options.data, options.input.autotune);
  if (!options.split.empty()) parse_split(options.split);  // throws for another form
  const OptimizerOptions& optimizer = options.strategy.optimizer;
  make_optimizer(optimizer);  // throws if a constant of the optimizer is out of range
  ScheduleOptions& schedule = options.schedule;
  if (!flags.has("--learning-rate")) {
    schedule.learning_rate = optimizer_row(optimizer).default_learning_rate;
  }
  if (schedule.kind == ScheduleKind::kStep && schedule.milestones.empty()) {
    throw UsageError("--lr-schedule step requires --lr-milestones EPOCHS, such as 80,120");
  }
}

// Refuses flags that do not matter in the run that the options describe.
void check_needs(const FlagSet& flags, const TrainOptions& options) {
  for (const TrainFlag& flag : train_flags()) {
    for (const TrainFlag::Need& need : flag.needs) {
      if (!need.what.empty()) flags.require(flag.name, need.holds(options), need.what);
    }
  }
}

void check_scale(const FlagSet& flags, const TrainOptions& options) {
  if (scales_by_batch(options.learning_rate_scale) && options.global_batch_size > 0 &&
      !flags.has("--reference-batch-size")) {
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
  check_cluster(flags, words.cluster, environment, options);
  ps::ConsistencyOptions& consistency = options.strategy.consistency;
  if (!flags.has("--consistency")) consistency.consistency = strategy_of(options).consistency;
  check_needs(flags, options);
  check_compute_delays(options);
  check_consistency(flags, options);
  check_scale(flags, options);
  check_files(options);
}

// Adds all flags of train, in the order of --help.
void add_train_flags(FlagSet& flags, TrainFlags& words) {
  words.options.strategy.optimizer.name = "adam";
  // The number of compute threads is chosen once the tasks of this host are known.
  words.options.strategy.lanes = 0;
  for (const TrainFlag& flag : train_flags()) {
    flags.begin_group(std::string(flag.group));
    if (flag.field != nullptr) add_flag(flags, flag, words.options, "");
    if (flag.name == "--rank") add_cluster_flags(flags, words.cluster);
    if (flag.name == "--config") flags.add_config();
  }
}

constexpr const char* kExitCodes =
    "Exit codes: 0 done; 1 failed; 2 wrong usage; 75 stopped by SIGINT, SIGTERM, SIGHUP, SIGUSR1,\n"
    "SIGUSR2 or SIGXCPU after writing a checkpoint; to continue, run again with --resume.\n\n";

// Returns the flags of `syncopate train`.
FlagSet named_train_flags(TrainFlags& words) {
  FlagSet flags("syncopate train",
                "Trains a network. Without flags, it trains mnist-cnn on generated digits.",
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
  for (const TrainFlag& flag : train_flags()) {
    if (flag.subject != Subject::kWorkload && flag.subject != Subject::kSamples) continue;
    flags.refuse(flag.name, own.program + " has a network and data of its own; leave the flag out");
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
  take_values(flags, words.options);
  check_together(flags, environment, words);
  words.options.image.cache_dir =
      flags.has("--cache-dir") ? words.options.cache_dir : local_cache_dir(environment);
  return words.options;
}

void add_flags_of_train(FlagSet& flags, TrainOptions& options,
                        std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const TrainFlag* const flag = find_train_flag(name);
    check(flag != nullptr && flag->field != nullptr, "the name of a flag of train");
    add_flag(flags, *flag, options, "");
  }
}

void add_data_flags(FlagSet& flags, TrainOptions& options, const std::string& default_text) {
  flags.begin_group("Model and data");
  for (const TrainFlag& flag : train_flags()) {
    if (flag.subject != Subject::kTraining) add_flag(flags, flag, options, default_text);
  }
}

void add_image_flags(FlagSet& flags, TrainOptions& options) {
  for (const TrainFlag& flag : train_flags()) {
    if (flag.subject == Subject::kSamples) add_flag(flags, flag, options, "");
  }
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
  take_values(flags, words.options);
  return words.options;
}

}  // namespace syncopate
