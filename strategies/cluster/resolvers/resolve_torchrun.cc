// The variables that torchrun sets for its workers.
// Source: torch.distributed.run, "Environment Variables".
#include <algorithm>

#include "models/base/errors.h"
#include "strategies/cluster/resolvers/launcher_variables.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "strategies/cluster/resolvers/slurm_step.h"

namespace syncopate {
namespace {

constexpr int kLastPort = 65535;

// Scripts put a port behind MASTER_ADDR: then that is split off. An IPv6 address without brackets
// has several colons and no port.
bool has_port(const std::string& address) {
  return std::count(address.begin(), address.end(), ':') == 1 ||
         address.find("]:") != std::string::npos;
}

// Where torchrun's own store listens.
Endpoint store_address(const Environment& environment) {
  const std::string address = *filled(environment, "MASTER_ADDR");
  if (!has_port(address)) {
    const int port = number_of(environment, "MASTER_PORT", 1, kLastPort, 0);
    const bool bracketed = address.starts_with('[') && address.ends_with(']');
    const std::string host = bracketed ? address.substr(1, address.size() - 2) : address;
    return parse_endpoint(to_string({host, static_cast<std::uint16_t>(port)}), "MASTER_ADDR");
  }
  const Endpoint store = parse_endpoint(address, "MASTER_ADDR");
  const int port = number_of(environment, "MASTER_PORT", 1, kLastPort, store.port);
  if (port == store.port) return store;
  throw UsageError("MASTER_ADDR=" + address + " and MASTER_PORT=" + std::to_string(port) +
                   " name two ports; expected the port in MASTER_PORT alone");
}

// One port further than the store, which holds its own on that host for as long as torchrun runs.
Endpoint beside(Endpoint store) {
  if (store.port == kLastPort) {
    throw UsageError(
        "MASTER_PORT=65535: expected a port below, since the tasks meet at the next one; give "
        "torchrun another --master-port");
  }
  ++store.port;
  return store;
}

// Its run's, and which of its starts this is: a restarted group must not meet stragglers of the one
// before. A run that was given no --rdzv-id is called "none" in every job: in a step of Slurm's the
// job tells it from others. Not in a batch script or shell, from which a torchrun on another node
// may have been started without Slurm's variables.
std::string nonce_of(const Environment& environment) {
  const auto run = filled(environment, "TORCHELASTIC_RUN_ID");
  if (!run) return "";
  const auto job = filled(environment, "SLURM_JOB_ID");
  std::string name = *run;
  if (name == "none" && job && is_in_slurm_step(environment)) {
    name = "slurm-" + *job + "." + filled(environment, "SLURM_RESTART_COUNT").value_or("0");
  }
  return name + "." + filled(environment, "TORCHELASTIC_RESTART_COUNT").value_or("0");
}

}  // namespace

std::optional<ClusterSpec> resolve_torchrun(const ClusterFlags& /*unused*/,
                                            const Environment& environment, Notes& notes) {
  const bool ported = has_port(filled(environment, "MASTER_ADDR").value_or(""));
  const bool complete =
      ported ? has_all(environment, "torchrun", {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"},
                       notes)
             : has_all(environment, "torchrun",
                       {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"}, notes);
  if (!complete) return std::nullopt;

  ClusterSpec spec;
  spec.index = number_of(environment, "RANK", 0, kMostTasks, 0);
  spec.world_size = number_of(environment, "WORLD_SIZE", 1, kMostTasks, 1);
  require_below("RANK", spec.index, "WORLD_SIZE", spec.world_size);
  spec.is_local_told = true;
  spec.local_rank = number_of(environment, "LOCAL_RANK", 0, kMostTasks, 0);
  spec.local_size = number_of(environment, "LOCAL_WORLD_SIZE", 1, kMostTasks, spec.local_rank + 1);
  require_below("LOCAL_RANK", spec.local_rank, "LOCAL_WORLD_SIZE", spec.local_size);
  if (spec.world_size > 1) spec.rendezvous.endpoint = beside(store_address(environment));
  spec.nonce = nonce_of(environment);
  return spec;
}

}  // namespace syncopate
