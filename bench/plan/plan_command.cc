// Parses the command line of `syncopate-bench plan`.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/compare/cluster.h"
#include "bench/compare/presets.h"
#include "bench/compare/train_flags.h"
#include "bench/compare/variant.h"
#include "bench/harness/bench_commands.h"
#include "bench/plan/plan.h"
#include "deploy/cli/command_line.h"
#include "models/base/errors.h"
#include "models/base/flag_values.h"
#include "models/zoo/zoo.h"

namespace syncopate::bench {
namespace {

constexpr double kMostWorkers = 1 << 16;
constexpr double kMost = 100'000'000;

struct PlanFlags {
  PlanOptions options;
  std::string link_rate = "10gbit";
  std::string link_delay = "50us";
  std::vector<std::string> slow;
  std::string slow_worker;
  std::optional<std::int64_t> epochs;
};

void add_job_flags(FlagSet& flags, PlanFlags& words) {
  PlanOptions& options = words.options;
  flags.begin_group("Cluster");
  flags.add("--workers", &options.workers,
            "numbers of workers; each strategy is planned for each of these numbers",
            {.least = 1, .most = kMostWorkers, .separator = ','});
  flags.add("--servers", &options.servers, "number of servers, for the strategy parameter-server",
            {.least = 1, .most = 1024});
  flags.add("--workers-per-machine", &options.workers_per_machine,
            "number of workers that fit on one machine. A strategy that runs in one process is not "
            "recommended for more workers than this",
            {.least = 1, .most = kMostWorkers});
  flags.add("--link-rate", &words.link_rate,
            "data rate of each task's link in each direction, such as 10gbit; `none` means an "
            "unlimited rate",
            {.value = "RATE"});
  flags.add("--link-delay", &words.link_delay,
            "one-way delay of a link, such as 50us or 1ms; a number alone is in seconds",
            {.value = "TIME"});
  flags.begin_group("Fault injection");
  flags.add("--service-time", &options.service_time,
            "compute time of a step. exponential or lognormal: random times with the step time "
            "measured on this machine as their mean. " +
                std::string(kServiceTimeForms) +
                ": the given time instead of the measured one, as described in `syncopate train "
                "--help`. compute+ in front of it, such as compute+constant:5: the measured time "
                "plus the given delay",
            {.value = "DELAY", .default_text = "the step time measured on this machine"});
  flags.add("--slow", &words.slow, "multiply the compute time of each step of worker W by F",
            {.value = "worker=W,factor=F", .repeats = true});
  flags.add(
      "--slow-worker", &words.slow_worker,
      "slowdown factor, such as 4x, of the worker with the highest index. If --workers lists "
      "several numbers, only jobs of the largest number have this worker. Equivalent to --slow "
      "with this index",
      {.value = "FACTORx"});
}

void add_training_flags(FlagSet& flags, PlanFlags& words) {
  PlanOptions& options = words.options;
  flags.begin_group("Model and data");
  flags.add("--model", &options.model, "network", {.choices = network_names()});
  flags.add("--data", &options.data, "data set, in the form of `syncopate train --data`",
            {.value = "NAME"});
  flags.add("--batch-size-per-replica", &options.batch_size_per_replica,
            "number of samples per worker and step", {.least = 1});
  flags.add("--seed", &options.seed, "seed of random compute delays and of training");
  flags.begin_group("Strategy and devices");
  flags.add(
      "--strategies", &options.strategies,
      "strategies to plan, in the form of `syncopate-bench compare --strategies`",
      {.value = "NAME,...", .default_text = "all strategies except pipeline", .repeats = true});
  flags.add("--cut", &options.cut,
            "nodes after which the network is cut into pipeline stages; `syncopate network` "
            "marks the nodes at which a cut is possible",
            {.value = "NODE,...",
             .default_text = "nodes that give stages of about equal work",
             .separator = ','});
  flags.begin_group("Time to a target");
  flags.add(
      "--time-to-target", &options.time_to_target,
      "also train each strategy under the virtual clock, with each number in --workers that is "
      "at most " +
          std::to_string(kMostTrainedWorkers) +
          ", and report the simulated training time until --target-accuracy is reached. This "
          "training computes every gradient");
  flags.add("--target-accuracy", &options.target_accuracy,
            "target accuracy from 0 to 1, measured on the validation split if the data set has "
            "one, otherwise on the test split",
            {.least = 0.0, .most = 1.0, .needs = "--time-to-target"});
  flags.add("--epochs", &words.epochs,
            "number of passes over the training data. Only for --time-to-target, and for variants "
            "that begin with sums of gradients, such as local-sgd:post-local:8{local-from=1}",
            {.default_text = std::to_string(options.epochs), .least = 1});
  flags.take_rest(options.train_flags, "[FLAGS OF train]", "flags of train",
                  shared_rest_flags(SharedBy::kPlan));
}

PlanOptions options_of(const PlanFlags& flags, const Environment& environment) {
  PlanOptions options = flags.options;
  if (!options.time_to_target && !options.train_flags.empty()) {
    (void)parse_shared_train_flags(options.train_flags, SharedBy::kPlan);  // may be none of them
    throw UsageError("flags of train behind -- require --time-to-target");
  }
  options.link.delay_seconds = parse_seconds(flags.link_delay, "--link-delay");
  options.link.bytes_per_second =
      flags.link_rate == "none" ? 0.0 : parse_rate(flags.link_rate, "--link-rate");
  const int most = *std::ranges::max_element(options.workers);
  std::vector<std::string> slow = flags.slow;
  if (!flags.slow_worker.empty()) slow.push_back(slow_worker(flags.slow_worker, most));
  for (const std::string& word : slow) {
    options.slow.push_back(parse_slowness(word));
    if (options.slow.back().worker < most) continue;
    throw UsageError("--slow " + word + ": expected a worker from 0 to " +
                     std::to_string(most - 1) + ", or more --workers");
  }
  options.strategies.clear();
  for (const std::string& words : flags.options.strategies) {
    for (std::string& word : split_variants(words)) {
      options.strategies.push_back(std::move(word));
    }
  }
  const auto has_part = [](const std::string& word) {
    return word.find("local-from") != std::string::npos;
  };
  if (flags.epochs && !options.time_to_target &&
      std::ranges::none_of(options.strategies, has_part)) {
    throw UsageError(
        fmt::format("--epochs {} requires --time-to-target, or a variant with {{local-from=EPOCH}}",
                    *flags.epochs));
  }
  options.epochs = flags.epochs.value_or(options.epochs);
  if (options.strategies.empty()) {
    options.strategies.assign(kEveryStrategy.begin(), kEveryStrategy.end());
  }
  std::ranges::sort(options.workers);
  options.cache_dir = default_cache_dir(environment);
  return options;
}

}  // namespace

Command declare_plan(FlagSet& flags, const Environment& environment) {
  const auto words = std::make_shared<PlanFlags>();
  PlanOptions& options = words->options;
  add_job_flags(flags, *words);
  add_training_flags(flags, *words);
  flags.begin_group("Measurement and output");
  flags.add(
      "--calibrate-steps", &options.calibrate_steps,
      "number of training steps that are measured on this machine, with the strategy one-device",
      {.least = 1, .most = kMost});
  flags.add(
      "--gradients", &options.gradients,
      "minimum number of gradients that are simulated for each combination of a strategy and a "
      "number of workers",
      {.least = 1, .most = kMost});
  flags.add("--json", &options.json, "JSON file for all results", {.value = "FILE"});
  return [words, environment] { run_plan(options_of(*words, environment), std::cout); };
}

}  // namespace syncopate::bench
