// syncopate-bench step: milliseconds of one training step (forward, backward, update) on samples in
// memory, and beside it, in turns, a peer that trains the same network with the same batch,
// optimizer and threads.
#include <CLI/CLI.hpp>
#include <memory>
#include <thread>

#include "bench/harness/commands.h"
#include "bench/step/step.h"
#include "deploy/cli/device_options.h"
#include "deploy/cli/options.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr int kMost = 1'000'000;  // of anything one can ask for

}  // namespace

Command declare_step(CLI::App& app, const Environment& environment) {
  const auto options = std::make_shared<StepOptions>();
  options->training.lanes = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  app.add_option("--model", options->models, "networks, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--batch-size", options->batch_size, "samples per step (each network's usual one)")
      ->check(CLI::Range(1, kMost));
  app.add_option("--optimizer", options->optimizer, "(each network's usual one)");
  app.add_option("--threads", options->training.lanes, "compute lanes, and the peer's threads")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--learning-rate", options->training.learning_rate, "of both sides")
      ->check(CLI::Range(1e-9, 1e3))
      ->capture_default_str();
  app.add_option("--rounds", options->rounds, "turns of each side")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--steps-per-round", options->steps_per_round, "(about a second of work)")
      ->check(CLI::Range(1, kMost));
  auto* peer =
      app.add_option("--peer", options->peer, "command of the other side, words split at blanks");
  app.add_option("--peer-python", options->peer_python,
                 "the other side is this interpreter with bench/peers/torch_step.py, on a GPU "
                 "torch_gpu_step.py")
      ->excludes(peer);
  app.add_option("--json", options->json_file, "write the results, round by round, to this file");
  app.add_option("--retune", options->retune_file,
                 "instead: measure convolution algorithms and write the table to this file "
                 "(models/backend/cpu/algorithm_rows.inc)");
  app.add_flag("--quick", options->quick, "3 short rounds: does it run, not how fast");
  app.add_flag("--no-winograd", options->no_winograd, "direct convolutions only");
  app.add_flag("--no-fuse", options->no_fuse, "every node alone");
  app.add_flag("--profile", options->profile, "also forward, backward and update apart");
  const auto devices = std::make_shared<DeviceFlags>();
  add_device_flags(app, *devices);
  return [options, devices, cache_dir = default_cache_dir(environment)] {
    TrainOptions found;
    found.cache_dir = cache_dir;
    take_device_flags(*devices, found);
    find_devices(found);
    if (found.strategy.devices.size() > 1 && !found.takes_own_gpus) {
      throw UsageError("--devices " + devices->devices + ": a step is measured on one device");
    }
    options->training.device = found.strategy.devices.front();
    options->training.precision = found.strategy.precision;
    options->training.plan_file = found.strategy.plan_file;
    run_step(*options);
  };
}

}  // namespace syncopate::bench
