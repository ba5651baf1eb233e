#include "strategies/join_replicas.h"

#include <fmt/format.h>

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

// Returns the first pair of ranks that compute on one GPU, if any.
std::optional<std::pair<std::size_t, std::size_t>> ranks_that_share_a_gpu(
    std::span<const ReplicaPlace> replicas) {
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

// Returns the task, the machine and the GPU of every replica, by rank. Every task must call it,
// because the tasks exchange these places.
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
    mine += fmt::format(
        "{} {}\n", machine,
        is_gpu ? visible.at(static_cast<std::size_t>(device.index)).bus_id : std::string("cpu"));
  }
  const std::vector<std::string> by_task = alone ? std::vector{mine} : membership->exchange(mine);
  std::vector<ReplicaPlace> places;
  for (std::size_t task = 0; task < by_task.size(); ++task) {
    std::istringstream lines(by_task[task]);
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
    throw UsageError(fmt::format(
        "--collective nccl: replica {} computes on the CPU, and NCCL sums on NVIDIA GPUs; choose "
        "--devices cuda, or {}",
        r, is_one_task(replicas) ? "omit --collective" : "--collective ring"));
  }
  const auto shared = ranks_that_share_a_gpu(replicas);
  const std::string sharing =
      shared ? fmt::format("replicas {} and {} share a GPU ({})", shared->first, shared->second,
                           replicas[shared->first].gpu)
             : "";
  if (wants_nccl) {
    if (!shared) return {.place = SumPlace::kNccl};
    throw UsageError(fmt::format(
        "--collective nccl: {}, which NCCL refuses; give each replica a GPU of its own, or {}",
        sharing, is_one_task(replicas) ? "omit --collective" : "choose --collective ring"));
  }
  if (collective != "auto" && collective != "local") return {};
  if (replicas.size() == 1) return {.place = SumPlace::kNowhere};
  if (are_on_one_gpu(replicas)) {
    if (replicas.size() <= kMostReplicasOnOneGpu) return {.place = SumPlace::kOneGpu};
    return {.why_host = fmt::format("more than {} replicas share a GPU", kMostReplicasOnOneGpu)};
  }
  if (collective == "local") return {};
  if (shared) return {.why_host = sharing + ", so NCCL cannot sum their gradients"};
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
    log(LogLevel::kInfo, "gradients are copied to the host and summed there: " + choice.why_host);
  }
  const auto timeout = std::chrono::duration_cast<std::chrono::seconds>(collective.timeout);
  joined.updates_on_device = choice.place != SumPlace::kHost;
  if (choice.place == SumPlace::kOneGpu) {
    joined.on_device = load_cuda_module().join_on_one_gpu(backend_options(options, 0).device,
                                                          options.replicas, timeout);
  }
  for (int r = 0; choice.place == SumPlace::kNccl && r < options.replicas; ++r) {
    joined.on_device.push_back(
        load_cuda_module().join_by_nccl({.rank = first.rank() + r,
                                         .size = first.size(),
                                         .device = backend_options(options, r).device,
                                         .timeout = timeout}));
  }
  return joined;
}

}  // namespace syncopate
