// Reads the variables that torchrun sets for its workers, and the variables of
// init_method="env://": Kubernetes' PyTorchJob and scripts set them without torchrun.
// Source: torch.distributed.run, "Environment Variables"; torch.distributed, "Environment variable
// initialization".
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "models/base/errors.h"
#include "ps/net/socket.h"
#include "strategies/cluster/resolvers/launcher_variables.h"
#include "strategies/cluster/resolvers/resolvers.h"
#include "strategies/cluster/resolvers/slurm_step.h"

namespace syncopate {
namespace {

constexpr int kMaxTorchrunPort = 65535;

// Whether MASTER_ADDR contains a port, as some scripts set it. An IPv6 address without brackets has
// several colons and no port.
bool address_has_port(const std::string& address) {
  return std::count(address.begin(), address.end(), ':') == 1 ||
         address.find("]:") != std::string::npos;
}

// Returns the address of torchrun's own store.
Endpoint store_address(const Environment& environment) {
  const std::string address = *filled(environment, "MASTER_ADDR");
  if (!address_has_port(address)) {
    const int port = number_of(environment, "MASTER_PORT", 1, kMaxTorchrunPort, 0);
    const bool bracketed = address.starts_with('[') && address.ends_with(']');
    const std::string host = bracketed ? address.substr(1, address.size() - 2) : address;
    return parse_endpoint(to_string({host, static_cast<std::uint16_t>(port)}), "MASTER_ADDR");
  }
  const Endpoint store = parse_endpoint(address, "MASTER_ADDR");
  const int port = number_of(environment, "MASTER_PORT", 1, kMaxTorchrunPort, store.port);
  if (port == store.port) return store;
  throw UsageError(fmt::format(
      "MASTER_ADDR={} and MASTER_PORT={} name two ports; expected the port in MASTER_PORT alone",
      address, port));
}

// Rank 0's port: the one after the store's, which is occupied on that host while torchrun runs.
Endpoint next_port(Endpoint store) {
  if (store.port == kMaxTorchrunPort) {
    throw UsageError(
        "MASTER_PORT=65535: expected a port below, since the tasks meet at the next one; give "
        "torchrun another --master-port");
  }
  ++store.port;
  return store;
}

// The nonce consists of SYNCOPATE_NONCE, else torchrun's run id, and the restart count: a restarted
// group must not meet tasks that are left from the group before. Without --rdzv-id the run id is
// "none" in every job, and in a Slurm step the job id replaces it. In a batch script or shell it
// does not, because a torchrun on another node may have been started from there without Slurm's
// variables.
std::string nonce_of(const Environment& environment) {
  std::optional<std::string> run = given_nonce("", environment);
  if (run->empty()) run = filled(environment, "TORCHELASTIC_RUN_ID");
  if (!run) return "";
  const auto job = filled(environment, "SLURM_JOB_ID");
  std::string name = *run;
  if (name == "none" && job && is_in_slurm_step(environment)) {
    name =
        fmt::format("slurm-{}.{}", *job, filled(environment, "SLURM_RESTART_COUNT").value_or("0"));
  }
  return fmt::format("{}.{}", name,
                     filled(environment, "TORCHELASTIC_RESTART_COUNT").value_or("0"));
}

// Whether others can guess the nonce: torchrun draws a run id, a UUID, only with --standalone.
bool is_guessable(const Environment& environment) {
  constexpr std::size_t kUuidCharacters = 36;
  return given_nonce("", environment).empty() &&
         filled(environment, "TORCHELASTIC_RUN_ID").value_or("").size() < kUuidCharacters;
}

// Whether the variables are set that init_method="env://" reads; MASTER_PORT may stand in
// MASTER_ADDR.
bool has_ranks_and_address(const Environment& environment) {
  const auto address = filled(environment, "MASTER_ADDR");
  return filled(environment, "RANK") && filled(environment, "WORLD_SIZE") && address &&
         (filled(environment, "MASTER_PORT") || address_has_port(*address));
}

// Fills in what torchrun and init_method="env://" have in common, except the rendezvous.
ClusterSpec read_ranks(const Environment& environment) {
  ClusterSpec spec;
  spec.index = number_of(environment, "RANK", 0, kMostTasks, 0);
  spec.world_size = number_of(environment, "WORLD_SIZE", 1, kMostTasks, 1);
  require_below("RANK", spec.index, "WORLD_SIZE", spec.world_size);
  spec.nonce = nonce_of(environment);
  spec.is_nonce_guessable = is_guessable(environment);
  return spec;
}

// Returns how many processes torchrun would start on each node. Kubernetes' PyTorchJob sets a word,
// by default "auto", in pods that it counts as one process each.
// Source: training-operator, pkg/controller.v1/pytorch/envvar.go, getNprocPerNodeInt.
int processes_per_node(const Environment& environment) {
  constexpr const char* kVariable = "PET_NPROC_PER_NODE";
  const std::string text = filled(environment, kVariable).value_or("1");
  const char* const end = text.data() + text.size();
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool is_word = error == std::errc::invalid_argument || stop != end;
  return is_word ? 1 : number_within(kVariable, text, 1, kMostTasks);
}

// Notes variables that describe nodes: no task can learn its rank from them.
void note_node_variables(const Environment& environment, Notes& notes) {
  if (filled(environment, "RANK")) return;
  if (const auto nodes = filled(environment, "PET_NNODES")) {
    notes.push_back(fmt::format(
        "torchrun: PET_NNODES={} is a setting for torchrun, which has not started this task; start "
        "it with torchrun --no-python syncopate train ...",
        *nodes));
  } else if (const auto node = filled(environment, "NODE_RANK")) {
    notes.push_back(fmt::format(
        "torchrun: NODE_RANK={} is the number of a node, not of a task; start the tasks with "
        "torchrun --node-rank {} ..., or give each RANK and WORLD_SIZE",
        *node, *node));
  }
}

// A variable that every task needs, and what follows `export NAME=` in an advice.
struct NeededVariable {
  std::string_view name;
  std::string_view value;
};
constexpr std::array kNeeded = {
    NeededVariable{"RANK", "0 for the first task, 1 for the next, and so on"},
    NeededVariable{"WORLD_SIZE", "N, the number of tasks"},
    NeededVariable{"MASTER_ADDR", "HOST, rank 0's host, for all tasks"},
    NeededVariable{"MASTER_PORT", "29500, or another free port of rank 0's host, for all tasks"}};

// Whether the tasks need the variable: a port may stand in MASTER_ADDR.
bool is_needed(std::string_view variable, const Environment& environment) {
  return variable != "MASTER_PORT" ||
         !address_has_port(filled(environment, "MASTER_ADDR").value_or(""));
}

// Returns the variables without which these are not torchrun's. LOCAL_RANK is one if it is set:
// without it resolve_pytorch() reads the others.
std::vector<std::string_view> needed_variables(const Environment& environment) {
  std::vector<std::string_view> names;
  for (const NeededVariable& variable : kNeeded) {
    if (is_needed(variable.name, environment)) names.push_back(variable.name);
  }
  if (filled(environment, "LOCAL_RANK")) names.emplace_back("LOCAL_RANK");
  return names;
}

std::string advice_for_missing(const Environment& environment) {
  std::string advice;
  for (const NeededVariable& variable : kNeeded) {
    if (filled(environment, variable.name) || !is_needed(variable.name, environment)) continue;
    advice += fmt::format("; export {}={}", variable.name, variable.value);
  }
  return advice;
}

}  // namespace

std::optional<ClusterSpec> resolve_torchrun(const ClusterFlags& /*unused*/,
                                            const Environment& environment, Notes& notes) {
  if (has_ranks_and_address(environment) && !filled(environment, "LOCAL_RANK")) {
    return std::nullopt;  // resolve_pytorch() reads these
  }
  const std::size_t before = notes.size();
  if (!has_all(environment, "torchrun", needed_variables(environment), notes)) {
    const std::size_t after = notes.size();
    note_node_variables(environment, notes);
    const bool needs_advice = after > before && notes.size() == after;
    if (needs_advice) notes.back() += advice_for_missing(environment);
    return std::nullopt;
  }
  ClusterSpec spec = read_ranks(environment);
  spec.has_local_rank = true;
  spec.local_rank = number_of(environment, "LOCAL_RANK", 0, kMostTasks, 0);
  spec.local_size = number_of(environment, "LOCAL_WORLD_SIZE", 1, kMostTasks, spec.local_rank + 1);
  require_below("LOCAL_RANK", spec.local_rank, "LOCAL_WORLD_SIZE", spec.local_size);
  if (spec.world_size > 1) spec.rendezvous.endpoint = next_port(store_address(environment));
  return spec;
}

std::optional<ClusterSpec> resolve_pytorch(const ClusterFlags& /*unused*/,
                                           const Environment& environment, Notes& notes) {
  if (!has_ranks_and_address(environment) || filled(environment, "LOCAL_RANK")) return std::nullopt;
  ClusterSpec spec = read_ranks(environment);
  const int per_node = processes_per_node(environment);
  if (per_node > 1) {
    throw UsageError(fmt::format(
        "PET_NPROC_PER_NODE={}: expected torchrun to start {} tasks here, and it has "
        "not started this one; start them with torchrun --no-python syncopate train ...",
        per_node, per_node));
  }
  if (spec.world_size == 1) return spec;
  // Rank 0 takes the port itself: no torchrun has a store there.
  spec.rendezvous.endpoint = store_address(environment);
  // Some versions of PyTorchJob tell rank 0 that it is localhost, and other pods rank 0's name.
  const bool is_in_pod = filled(environment, "KUBERNETES_SERVICE_HOST").has_value();
  std::string& host = spec.rendezvous.endpoint->host;
  if (is_in_pod && spec.index == 0 && (host == "localhost" || is_loopback(host))) host = "0.0.0.0";
  notes.emplace_back(
      "PyTorch: LOCAL_RANK is not set; tasks that see the same GPUs divide them when they meet");
  return spec;
}

}  // namespace syncopate
