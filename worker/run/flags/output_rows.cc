// The flags of train about checkpoints, evaluations and output, and about fault injection.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "worker/checkpoint/weights_file.h"
#include "worker/run/flags/train_flag.h"

namespace syncopate {
namespace {

constexpr double kMostSnapshotSeconds = 1e6;
constexpr std::string_view kEvaluations = "give --evaluations before the --";
constexpr std::string_view kFolder = "each run keeps its files in the folder of --report";
constexpr std::string_view kOneRun =
    "every run would write to it; leave it out (the folder of --report has the curves), or train a "
    "single run with syncopate train";

// Tasks may find the weights under different paths, so the bytes are compared.
FlagText compared_weights(const TrainOptions& o) {
  if (o.init_from.empty()) return std::nullopt;
  return describe_weights(o.init_from);
}

FlagText service_time_text(const TrainOptions& o) {
  const ServiceTimeOptions& time = o.loop.service_time;
  return time.kind == ServiceTimeKind::kNone ? std::nullopt : FlagText(to_text(time));
}

FlagText words_text(const std::vector<std::string>& words) {
  if (words.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(words, " "));
}

FlagText slow_text(const TrainOptions& o) {
  std::vector<std::string> all;
  for (const Slowness& slow : o.loop.service_time.slow) {
    all.push_back(fmt::format("worker={},factor={}", slow.worker, slow.factor));
  }
  return words_text(all);
}

FlagText pause_text(const TrainOptions& o) {
  std::vector<std::string> all;
  for (const Pause& pause : o.loop.service_time.pauses) {
    all.push_back(
        fmt::format("worker={},at={},for={}", pause.worker, pause.at_seconds, pause.for_seconds));
  }
  return words_text(all);
}

FlagText link_rate_text(const TrainOptions& o) {
  const double rate = o.strategy.link.bytes_per_second;
  return rate > 0.0 ? FlagText(fmt::format("{}kb", rate / 1e3)) : std::nullopt;
}

FlagText link_delay_text(const TrainOptions& o) {
  const double delay = o.strategy.link.delay_seconds;
  return delay > 0.0 ? FlagText(fmt::format("{}", delay)) : std::nullopt;
}

std::vector<TrainFlag> evaluation_flags() {
  return {
      {.name = "--eval-every",
       .help = "number of epochs between two evaluations on the test split; training also ends "
               "with an evaluation. 0: no evaluation at all, unless --eval-every-steps is given",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.loop.eval_every_epochs; },
       .rules = {.least = 0},
       .in_comparison = {InComparison::kSetByCompare, kEvaluations}},
      {.name = "--eval-every-steps",
       .help = "number of steps between two evaluations; training also ends with an evaluation. 0: "
               "evaluate as --eval-every says",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.loop.eval_every_steps; },
       .rules = {.least = 0},
       .in_comparison = {InComparison::kSetByCompare, kEvaluations}},
      {.name = "--eval-when",
       .help = "time of the evaluations (due: during training; end: after training, on snapshots "
               "that were saved in --checkpoint-dir or $TMPDIR, so that no asynchronous worker "
               "pauses to evaluate)",
       .field = [](TrainOptions& o) -> FlagTarget { return enum_target(o.loop.eval_when); },
       .in_comparison =
           {InComparison::kSetByCompare,
            "compare evaluates after training, so that evaluations take no time from it"}},
      {.name = "--metrics",
       .help = "file for the results in JSON Lines format; each line is an event of the type "
               "begin, step, eval or summary",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.metrics; },
       .rules = {.value = "FILE", .default_text = "none"},
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kSetByCompare, kFolder}},
      {.name = "--tensorboard",
       .help = "folder for TensorBoard's event files: curves of training and evaluations, and a "
               "confusion matrix if there are at most 256 classes",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.tensorboard; },
       .rules = {.value = "DIR", .default_text = "none"},
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kRefused, kOneRun}},
      {.name = "--log-every",
       .help = "number of steps between two `step` lines of --metrics, and between two points of "
               "--tensorboard",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.loop.log_every_steps; },
       .rules = {.least = 1},
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kSetByCompare, kEvaluations}},
      {.name = "--trace",
       .help =
           "file for a timeline of what each replica and each input thread does; open the file "
           "in ui.perfetto.dev or chrome://tracing. In a job of several tasks, each task adds its "
           "rank to the file name, such as t.0.json. An existing FILE is renamed to FILE.old",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.trace; },
       .rules = {.value = "FILE", .default_text = "none"},
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kRefused, kOneRun}},
      {.name = "--no-progress",
       .help = "do not print the progress line; notes and results are still printed",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.hides_progress; },
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {.use = InComparison::kNeutral, .is_for_replay = true}},
  };
}

// The output of servers.
std::vector<TrainFlag> server_flags() {
  return {
      {.name = "--snapshot-every",
       .help = "time between two snapshots, which servers save in --checkpoint-dir; a restarted "
               "server resumes from its last snapshot",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.snapshot_interval; },
       .rules = {.unit = "seconds", .least = 0.1, .most = kMostSnapshotSeconds},
       .agreement = TrainFlag::Agreement::kNone,
       .needs = {kServerStrategy},
       .in_comparison = {InComparison::kSetByCompare, kFolder}},
      {.name = "--record",
       .help = "file in which each server records the order of the pushes that it applies: "
               "FILE.shard0, FILE.shard1, ...",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.record; },
       .rules = {.value = "FILE", .default_text = "none"},
       .agreement = TrainFlag::Agreement::kNone,
       .needs = {kServerStrategy},
       .in_comparison = {InComparison::kRefused,
                         "every run would write to it; record a single run with syncopate launch"}},
  };
}

}  // namespace

std::vector<TrainFlag> output_flags() {
  std::vector<TrainFlag> flags = {
      {.name = "--config",
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kRefused, "give its flags themselves"}},
      {.name = "--checkpoint-dir",
       .help = "folder for checkpoints",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.loop.checkpoint_dir; },
       .rules = {.value = "DIR", .default_text = "no checkpoints are written"},
       .compared =
           [](const TrainOptions& o) {
             return FlagText(o.loop.checkpoint_dir.empty() ? "absent" : "given");
           },
       .in_comparison = {InComparison::kSetByCompare, kFolder}},
      {.name = "--checkpoint-every",
       .help = "number of steps between two checkpoints",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.loop.checkpoint_every_steps; },
       .rules = {.default_text = "the steps of one epoch", .least = 1},
       .is_unset_at_zero = true,
       .needs = {kCheckpointDir},
       .in_comparison = {InComparison::kSetByCompare, kFolder}},
      {.name = "--keep-checkpoints",
       .help = "number of checkpoints to keep; older ones are removed",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.loop.keep_checkpoints; },
       .rules = {.least = 1},
       .agreement = TrainFlag::Agreement::kNone,
       .needs = {kCheckpointDir},
       .in_comparison = {InComparison::kSetByCompare, kFolder}},
      {.name = "--resume",
       .help = "resume training from the newest checkpoint in --checkpoint-dir; if the folder has "
               "no checkpoint, start from the beginning",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.resume; },
       .needs = {kCheckpointDir},
       .in_comparison = {InComparison::kRefused,
                         "compare with the same --report continues by itself"}},
      {.name = "--init-from",
       .help =
           "checkpoint or safetensors file with the initial weights; for a folder, its newest "
           "checkpoint is used. Dense layers at the end of the network are initialised at random, "
           "as --seed determines, if FILE lacks their weights or has them in other shapes",
       .field = [](TrainOptions& o) -> FlagTarget { return &o.init_from; },
       .rules = {.value = "FILE", .default_text = "none"},
       .compared = compared_weights},
  };
  for (const auto& more : {evaluation_flags(), server_flags()}) {
    flags.insert(flags.end(), more.begin(), more.end());
  }
  return flags;
}

std::vector<TrainFlag> fault_flags() {
  return {
      {.name = "--service-time",
       .help = "delay that is added to each step to imitate a slower machine, with a mean of MS "
               "milliseconds: " +
               std::string(kServiceTimeForms) +
               ". SIGMA is the standard deviation of the logarithm (default: 0.5). In bursts of 20 "
               "steps, which are a tenth of the steps, a step takes FACTOR times (default: 10) as "
               "long as others. FILE has a measured time in milliseconds on each line",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           o.loop.service_time = parse_service_time(text, "--service-time");
         };
       },
       .rules = {.value = "DELAY", .default_text = "none"},
       .text = service_time_text,
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = kOfCompareAndPlan},
      {.name = "--slow",
       .help = "multiply the --service-time of worker W by F",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           o.loop.service_time.slow.push_back(parse_slowness(text));
         };
       },
       .rules = {.value = "worker=W,factor=F", .repeats = true},
       .text = slow_text,
       .agreement = TrainFlag::Agreement::kNone,
       .needs = {{[](const TrainOptions& o) {
                    return o.loop.service_time.kind != ServiceTimeKind::kNone;
                  },
                  "--service-time, which it multiplies"}},
       .in_comparison = kOfCompareAndPlan},
      {.name = "--pause",
       .help = "pause worker W once. `at` is the time since the worker's first step; `for` is the "
               "length of the pause. Example: worker=1,at=20s,for=5s",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           o.loop.service_time.pauses.push_back(parse_pause(text));
         };
       },
       .rules = {.value = "worker=W,at=TIME,for=TIME", .repeats = true},
       .text = pause_text,
       .agreement = TrainFlag::Agreement::kNone,
       .in_comparison = {InComparison::kSetByCompare, "give it before the --"}},
      {.name = "--link-delay",
       .help =
           "one-way delay that is added to gradients and parameters sent over TCP, such as 1ms (a "
           "number without a unit means seconds); the rendezvous and heartbeats are not delayed",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           o.strategy.link.delay_seconds = parse_link_delay(text);
         };
       },
       .rules = {.value = "TIME", .default_text = "none"},
       .text = link_delay_text,
       .needs = {{has_links, ""}},
       .in_comparison = kOfCompareAndPlan},
      {.name = "--link-rate",
       .help = "limit that syncopate sets on the data rate of each task's network link, in each "
               "direction, to imitate a slower network. Examples: 1gbit or 100mbit (bits per "
               "second), 50mb (megabytes per second)",
       .field = [](TrainOptions& o) -> FlagTarget {
         return [&o](const std::string& text) {
           o.strategy.link.bytes_per_second = parse_link_rate(text);
         };
       },
       .rules = {.value = "RATE", .default_text = "unlimited"},
       .text = link_rate_text,
       .needs = {{has_links, ""}},
       .in_comparison = kOfCompareAndPlan},
  };
}

}  // namespace syncopate
