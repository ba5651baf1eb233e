#include "strategies/join_replicas.h"

#include <optional>
#include <sstream>
#include <utility>

#include "models/backend/cuda_module.h"
#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/net/endpoint.h"
#include "strategies/synchronous.h"

namespace syncopate {
namespace {

// Two ranks that compute on one GPU.
std::optional<std::pair<std::size_t, std::size_t>> sharing(std::span<const ReplicaPlace> replicas) {
  for (std::size_t b = 1; b < replicas.size(); ++b) {
    for (std::size_t a = 0; a < b; ++a) {
      if (replicas[a].machine == replicas[b].machine && replicas[a].gpu == replicas[b].gpu) {
        return {{a, b}};
      }
    }
  }
  return std::nullopt;
}

bool are_on_one_gpu(std::span<const ReplicaPlace> replicas) {
  const ReplicaPlace& first = replicas.front();
  for (const ReplicaPlace& other : replicas) {
    if (other.task != first.task || other.gpu != first.gpu) return false;
  }
  return true;
}

bool is_one_task(std::span<const ReplicaPlace> replicas) {
  return replicas.front().task == replicas.back().task;
}

// Every task calls: places of all replicas, by rank.
std::vector<ReplicaPlace> find_places(const StrategyOptions& options) {
  std::vector<CudaDevice> visible;
  if (options.devices.front().kind == DeviceKind::kCuda) visible = load_cuda_module().devices();
  Membership* const membership = options.membership;
  const bool alone = membership == nullptr || membership->members().size() == 1;
  std::string machine = own_boot_id();
  if (machine.empty() && !alone) {
    machine = membership->members()[static_cast<std::size_t>(membership->index())].host;
  }
  std::string mine;
  for (int replica = 0; replica < options.replicas; ++replica) {
    const Device device = backend_options(options, replica).device;
    const bool is_gpu = device.kind == DeviceKind::kCuda;
    mine += machine + ' ' +
            (is_gpu ? visible.at(static_cast<std::size_t>(device.index)).bus_id : "cpu") + '\n';
  }
  const std::vector<std::string> said = alone ? std::vector{mine} : membership->exchange(mine);
  std::vector<ReplicaPlace> places;
  for (std::size_t task = 0; task < said.size(); ++task) {
    std::istringstream lines(said[task]);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t space = line.find(' ');
      const std::string gpu = line.substr(space + 1);
      places.push_back({static_cast<int>(task), line.substr(0, space), gpu == "cpu" ? "" : gpu});
    }
  }
  return places;
}

}  // namespace

SumChoice choose_sums(std::string_view collective, std::span<const ReplicaPlace> replicas) {
  const bool wants_nccl = collective == "nccl";
  for (std::size_t r = 0; r < replicas.size(); ++r) {
    if (!replicas[r].gpu.empty()) continue;
    if (!wants_nccl) return {};
    throw UsageError("--collective nccl: replica " + std::to_string(r) +
                     " computes on the CPU, and NCCL sums on NVIDIA GPUs; choose --devices cuda, "
                     "or " +
                     (is_one_task(replicas) ? "leave --collective out" : "--collective ring"));
  }
  const auto shared = sharing(replicas);
  const std::string who = shared ? "replicas " + std::to_string(shared->first) + " and " +
                                       std::to_string(shared->second) + " share a GPU (" +
                                       replicas[shared->first].gpu + ")"
                                 : "";
  if (wants_nccl) {
    if (!shared) return {.place = SumPlace::kNccl};
    throw UsageError(
        "--collective nccl: " + who +
        ", which NCCL refuses; give each replica a GPU of its own, or " +
        (is_one_task(replicas) ? "leave --collective out" : "choose --collective ring"));
  }
  if (collective != "auto" && collective != "local") return {};
  if (replicas.size() == 1) return {.place = SumPlace::kNowhere};
  if (are_on_one_gpu(replicas)) {
    if (replicas.size() <= kMostReplicasOnOneGpu) return {.place = SumPlace::kOneGpu};
    return {.why_host =
                "more than " + std::to_string(kMostReplicasOnOneGpu) + " replicas share a GPU"};
  }
  if (collective == "local") return {};
  if (shared) return {.why_host = who + ", so that NCCL cannot sum"};
  return {.place = SumPlace::kNccl};
}

JoinedReplicas join_replicas(const StrategyOptions& options, const Graph& graph) {
  const CollectiveOptions collective = collective_options(options, graph);
  const bool may_be_on_device =
      options.collective == "auto" || options.collective == "local" || options.collective == "nccl";
  const SumChoice choice =
      may_be_on_device ? choose_sums(options.collective, find_places(options)) : SumChoice{};
  JoinedReplicas joined{.collectives = make_collectives(collective)};
  const Collective& first = *joined.collectives.front();
  if (!choice.why_host.empty() && first.rank() == 0) {
    log(LogLevel::kInfo, "gradients travel to the host and are summed there: " + choice.why_host);
  }
  joined.updates_on_device = choice.place != SumPlace::kHost;
  if (choice.place == SumPlace::kOneGpu) {
    joined.on_device = load_cuda_module().join_on_one_gpu(backend_options(options, 0).device,
                                                          options.replicas, collective.patience);
  }
  for (int r = 0; choice.place == SumPlace::kNccl && r < options.replicas; ++r) {
    joined.on_device.push_back(
        load_cuda_module().join_by_nccl({.rank = first.rank() + r,
                                         .size = first.size(),
                                         .device = backend_options(options, r).device,
                                         .timeout = collective.patience}));
  }
  return joined;
}

}  // namespace syncopate
