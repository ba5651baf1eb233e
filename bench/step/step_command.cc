// syncopate-bench step prints the milliseconds of one training step (forward, backward, update) on
// samples in memory. A peer that trains an equal network with equal batch size, optimizer and
// number of threads may take turns with it.
#include <memory>
#include <thread>

#include "bench/harness/commands.h"
#include "bench/step/step.h"
#include "deploy/cli/command_line.h"
#include "deploy/cli/device_flags.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

constexpr double kMost = 1'000'000;

}  // namespace

Command declare_step(FlagSet& flags, const Environment& environment) {
  const auto options = std::make_shared<StepOptions>();
  options->training.lanes = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  flags.add("--model", &options->models, "networks", {.value = "NAME,...", .separator = ','});
  flags.add("--batch-size", &options->batch_size, "samples per step",
            {.default_text = "each network's usual one", .least = 1, .most = kMost});
  flags.add("--optimizer", &options->optimizer, "update rule",
            {.value = "NAME", .default_text = "each network's usual one"});
  flags.add("--threads", &options->training.lanes, "compute threads of both sides",
            {.least = 1, .most = kMost});
  flags.add("--learning-rate", &options->training.learning_rate, "learning rate of both sides",
            {.least = 1e-9, .most = 1e3});
  flags.add("--rounds", &options->rounds, "turns of each side", {.least = 1, .most = kMost});
  flags.add("--steps-per-round", &options->steps_per_round, "steps of a turn",
            {.default_text = "about a second of work", .least = 1, .most = kMost});
  flags.add("--peer", &options->peer, "command of the other side with its arguments",
            {.value = "COMMAND", .default_text = "none"});
  flags.add("--peer-python", &options->peer_python,
            "Python interpreter that runs the other side: bench/peers/torch_step.py, on a GPU "
            "torch_gpu_step.py",
            {.value = "FILE", .default_text = "none", .excludes = {"--peer"}});
  flags.add("--json", &options->json_file, "file for the results of every round",
            {.value = "FILE"});
  flags.add("--retune", &options->retune_file,
            "file for a table of measured convolution algorithms, in place of the benchmark "
            "(models/backend/cpu/algorithm_rows.inc)",
            {.value = "FILE"});
  flags.add("--quick", &options->quick, "3 short rounds, to see that the benchmark runs");
  flags.add("--no-winograd", &options->no_winograd, "direct convolutions only");
  flags.add("--no-fuse", &options->no_fuse, "no fusion of nodes");
  flags.add("--profile", &options->profile, "separate times of forward, backward and update");
  const auto devices = std::make_shared<DeviceFlags>();
  add_device_flags(flags, *devices);
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
