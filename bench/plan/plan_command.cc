// syncopate-bench plan: what each strategy would do on a cluster that is not here.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "bench/harness/commands.h"
#include "bench/plan/plan.h"
#include "deploy/cli/options.h"
#include "models/base/errors.h"
#include "models/base/flag_values.h"

namespace syncopate::bench {
namespace {

constexpr int kMostWorkers = 1 << 16;
constexpr int kMost = 100'000'000;  // of anything else

struct PlanFlags {
  PlanOptions options;
  std::string link_rate = "10gbit";
  std::string link_delay = "50us";
  std::vector<std::string> slow;
};

void add_cluster_flags(CLI::App& app, PlanFlags& flags) {
  PlanOptions& options = flags.options;
  const std::string group = "The cluster";
  app.add_option("--workers", options.workers, "of each row, separated by commas")
      ->delimiter(',')
      ->check(CLI::Range(1, kMostWorkers))
      ->capture_default_str()
      ->group(group);
  app.add_option("--servers", options.servers, "of parameter-server")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group(group);
  app.add_option("--workers-per-machine", options.workers_per_machine,
                 "that one machine holds: strategies of one process are recommended up to so many")
      ->check(CLI::Range(1, kMostWorkers))
      ->capture_default_str()
      ->group(group);
  app.add_option("--link-rate", flags.link_rate, "of each task, each way; none: without limit")
      ->capture_default_str()
      ->group(group);
  app.add_option("--link-delay", flags.link_delay, "one way")->capture_default_str()->group(group);
  app.add_option("--service-time", options.service_time,
                 "of a step: exponential | lognormal around what was measured; constant:MS | "
                 "exponential:MS | lognormal:MS[:SIGMA] instead of it; compute+one of those in "
                 "addition, as train --service-time (default: what was measured, each time)")
      ->group(group);
  app.add_option("--slow", flags.slow, "worker=W,factor=F; repeat for more")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->group(group);
}

void add_training_flags(CLI::App& app, PlanFlags& flags) {
  PlanOptions& options = flags.options;
  const std::string group = "What is trained";
  app.add_option("--strategies", options.strategies,
                 "separated by commas, as compare has them; default: every strategy")
      ->delimiter(',')
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--model", options.model, "a network of train")
      ->capture_default_str()
      ->group(group);
  app.add_option("--data", options.data, "as train's")->capture_default_str()->group(group);
  app.add_option("--batch-size-per-replica", options.batch_size_per_replica, "of every worker")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app.add_flag("--time-to-target", options.time_to_target,
               "also train rows with up to " + std::to_string(kMostTrainedWorkers) +
                   " workers under the virtual clock, every gradient computed")
      ->group(group);
  app.add_option("--target-accuracy", options.target_accuracy, "with --time-to-target")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  app.add_option("--epochs", options.epochs, "with --time-to-target")
      ->check(CLI::PositiveNumber)
      ->capture_default_str()
      ->group(group);
  app.add_option("train_flags", options.train_flags,
                 "with --time-to-target: further flags of train, after --")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

PlanOptions options_of(const CLI::App& app, const PlanFlags& flags,
                       const Environment& environment) {
  PlanOptions options = flags.options;
  if (!options.time_to_target) {
    for (const char* flag : {"--target-accuracy", "--epochs", "train_flags"}) {
      if (app.count(flag) == 0) continue;
      throw UsageError(std::string(flag) + ": nothing is trained without --time-to-target; add it");
    }
  }
  options.link.delay_seconds = parse_seconds(flags.link_delay, "--link-delay");
  options.link.bytes_per_second =
      flags.link_rate == "none" ? 0.0 : parse_rate(flags.link_rate, "--link-rate");
  const int most = *std::ranges::max_element(options.workers);
  for (const std::string& word : flags.slow) {
    options.slow.push_back(parse_slowness(word));
    if (options.slow.back().worker < most) continue;
    throw UsageError("--slow " + word + ": no row has such a worker; expected 0 to " +
                     std::to_string(most - 1) + ", or more --workers");
  }
  if (options.strategies.empty()) {
    options.strategies.assign(kEveryStrategy.begin(), kEveryStrategy.end());
  }
  std::ranges::sort(options.workers);
  options.cache_dir = default_cache_dir(environment);
  return options;
}

}  // namespace

Command declare_plan(CLI::App& app, const Environment& environment) {
  const auto flags = std::make_shared<PlanFlags>();
  PlanOptions& options = flags->options;
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  add_cluster_flags(app, *flags);
  add_training_flags(app, *flags);
  app.add_option("--calibrate-steps", options.calibrate_steps, "of one-device, timed here")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--gradients", options.gradients, "simulated for each row, at least")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of service times, and of training")
      ->capture_default_str();
  app.add_option("--json", options.json, "write everything to this file");
  return [flags, &app, environment] { run_plan(options_of(app, *flags, environment), std::cout); };
}

}  // namespace syncopate::bench
