// Parses the command line of `syncopate-bench plan`.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
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
};

void add_job_flags(FlagSet& flags, PlanFlags& words) {
  PlanOptions& options = words.options;
  flags.begin_group("Cluster");
  flags.add("--workers", &options.workers, "numbers of workers; the plan has a row for each",
            {.least = 1, .most = kMostWorkers, .separator = ','});
  flags.add("--servers", &options.servers, "number of servers of parameter-server",
            {.least = 1, .most = 1024});
  flags.add("--workers-per-machine", &options.workers_per_machine,
            "number of workers that fit on one machine; a strategy of one process can have no more "
            "workers",
            {.least = 1, .most = kMostWorkers});
  flags.add("--link-rate", &words.link_rate,
            "rate of each task's link in each direction, such as 10gbit; none: unlimited",
            {.value = "RATE"});
  flags.add("--link-delay", &words.link_delay,
            "one-way delay of a link, such as 50us or 1ms; a number alone is in seconds",
            {.value = "TIME"});
  flags.begin_group("Fault injection");
  flags.add("--service-time", &options.service_time,
            "compute time of a step. exponential and lognormal vary around the measured time; "
            "constant:MS, exponential:MS and lognormal:MS[:SIGMA] replace the measured time. With "
            "compute+ in front, such as compute+constant:5, these delays are added to the measured "
            "time, as by train --service-time",
            {.value = "DELAY", .default_text = "the measured time"});
  flags.add("--slow", &words.slow, "multiply the step times of worker W by F",
            {.value = "worker=W,factor=F", .repeats = true});
  flags.add("--slow-worker", &words.slow_worker,
            "factor by which the last worker is slower, such as 4x; only in the row with the most "
            "workers. The same as --slow with the number of that worker",
            {.value = "FACTORx"});
}

void add_training_flags(FlagSet& flags, PlanFlags& words) {
  PlanOptions& options = words.options;
  flags.begin_group("Model and data");
  flags.add("--model", &options.model, "network", {.choices = network_names()});
  flags.add("--data", &options.data, "data set, as in train", {.value = "NAME"});
  flags.add("--batch-size-per-replica", &options.batch_size_per_replica,
            "samples per worker and step", {.least = 1});
  flags.add("--seed", &options.seed, "seed of compute delays and of training");
  flags.begin_group("Strategy and devices");
  flags.add("--strategies", &options.strategies, "strategies, in the form of compare --strategies",
            {.value = "NAME,...", .default_text = "every strategy but pipeline", .repeats = true});
  flags.add("--cut", &options.cut,
            "nodes after which pipelines are cut; `syncopate network` marks the possible nodes",
            {.value = "NODE,...",
             .default_text = "nodes that give stages of equal work",
             .separator = ','});
  flags.begin_group("Time to a target");
  flags.add("--time-to-target", &options.time_to_target,
            "train the rows with up to " + std::to_string(kMostTrainedWorkers) +
                " workers under the virtual clock, which computes every gradient, and report the "
                "time to --target-accuracy");
  flags.add("--target-accuracy", &options.target_accuracy, "test accuracy from 0 to 1",
            {.least = 0.0, .most = 1.0, .needs = "--time-to-target"});
  flags.add("--epochs", &options.epochs, "passes over the data",
            {.least = 1, .needs = "--time-to-target"});
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
      if (!options.time_to_target && word.find('{') != std::string::npos) {
        throw UsageError(fmt::format(
            "--strategies {}: flags of train in braces require --time-to-target", word));
      }
      options.strategies.push_back(std::move(word));
    }
  }
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
  flags.add("--calibrate-steps", &options.calibrate_steps,
            "number of steps of one-device that are measured on this machine",
            {.least = 1, .most = kMost});
  flags.add("--gradients", &options.gradients, "least number of gradients to simulate for each row",
            {.least = 1, .most = kMost});
  flags.add("--json", &options.json, "JSON file for all results", {.value = "FILE"});
  return [words, environment] { run_plan(options_of(*words, environment), std::cout); };
}

}  // namespace syncopate::bench
