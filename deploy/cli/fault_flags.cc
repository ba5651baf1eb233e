// Checks the flags of fault injection: slow links and compute delays.
#include <fmt/format.h>

#include "deploy/cli/strategy_flags.h"
#include "models/base/errors.h"
#include "worker/run/run_devices.h"

namespace syncopate {
namespace {

// Returns a link flag that the user gave, as text for a message, such as "--link-rate 1gbit".
std::string given_flag(const FlagSet& flags) {
  return flags.as_given(flags.has("--link-delay") ? "--link-delay" : "--link-rate");
}

}  // namespace

void check_link(const FlagSet& flags, StrategyOptions& options) {
  if (options.link.is_plain()) return;
  const StrategyRow& strategy = row_of(options);
  if (strategy.tasks == StrategyRow::Tasks::kOne) {
    throw UsageError(
        fmt::format("{}: --strategy {} is one process and has no links; leave it out, or choose "
                    "multi-worker-mirrored or parameter-server",
                    given_flag(flags), options.name));
  }
  if (!strategy.has_servers() && options.collective != "auto" && options.collective != "ring") {
    throw UsageError(
        fmt::format("{} requires --collective ring: the library of --collective {} owns its links",
                    given_flag(flags), options.collective));
  }
  if (options.transport == Transport::kShm) {
    throw UsageError(
        fmt::format("{}: shared memory has no links; leave --transport shm out, or choose tcp",
                    given_flag(flags)));
  }
  options.transport = Transport::kTcp;
}

void check_compute_delays(TrainOptions& options) {
  options.loop.service_time.seed = options.strategy.seed;
  options.loop.first_worker = options.cluster.index * options.strategy.replicas;
  if (!options.takes_every_device) check_delayed_workers(options);
}

}  // namespace syncopate
