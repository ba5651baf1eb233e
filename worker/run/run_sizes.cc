#include "worker/run/run_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "models/base/errors.h"
#include "models/base/resource_limits.h"
#include "ps/shard/stale_gradients.h"
#include "strategies/input_shard.h"
#include "worker/train/train_loop.h"

namespace syncopate {
namespace {

constexpr int kMostDefaultLanes = 8;

// Returns the number of batches in one update. It is more than one only with backup workers and
// where servers collect gradients, because a coordinator counts their steps; otherwise the global
// batch is the batch of an update.
std::int64_t batches_per_update(const TrainOptions& options) {
  const ps::ConsistencyOptions& consistency = options.strategy.consistency;
  const bool is_summed = consistency.consistency == ps::Consistency::kSync;
  if (!is_summed) return ps::gradients_per_update(consistency);
  if (is_synchronous(consistency)) return 1;
  return count_workers(options) - consistency.backup_workers;
}

// The number of replicas, or of stages that are threads, among which CPUs are divided.
struct Sharing {
  int of_task = 1;  // of this task
  int of_host = 1;  // of all tasks on this host
};

Sharing sharing_of(const TrainOptions& options, const Membership* membership) {
  const bool has_threads = has_stages(options) && membership == nullptr;
  const int own = has_threads ? options.strategy.stages : options.strategy.replicas;
  Sharing sharing{.of_task = own, .of_host = own};
  if (has_servers(options)) sharing.of_host *= tasks_of_host(options, membership);
  if (membership != nullptr) {
    const std::vector<Member>& members = membership->members();
    const Member& me = members[static_cast<std::size_t>(membership->index())];
    for (const Member& member : members) {
      if (member.index != me.index && member.host == me.host)
        sharing.of_host += member.num_replicas;
    }
  }
  return sharing;
}

// Returns the fewest samples, 0 excepted, that a batch norm sees together in a step: of one part of
// one replica's share, or of a part of all replicas with synchronized statistics.
std::int64_t fewest_normalized(const StrategyOptions& strategy, int replicas,
                               std::int64_t global_batch) {
  const bool is_synchronized = strategy.batch_norm == BatchNormStatistics::kSync;
  std::int64_t fewest = global_batch;
  for (int part = 0; part < strategy.micro_batches; ++part) {
    std::int64_t together = 0;
    for (int replica = 0; replica < replicas; ++replica) {
      const BatchShare share = share_of_replica(global_batch, replica, replicas);
      const BatchShare of_part =
          share_of_replica(share.end - share.begin, part, strategy.micro_batches);
      const std::int64_t samples = of_part.end - of_part.begin;
      together += samples;
      if (!is_synchronized && samples > 0) fewest = std::min(fewest, samples);
    }
    if (is_synchronized && together > 0) fewest = std::min(fewest, together);
  }
  return fewest;
}

// Returns the CPUs for each of `sharing`; may be 0.
int cpus_of_each(const TrainOptions& options, const Sharing& sharing, const CpuLimits& limits) {
  const int sharing_affinity = options.has_own_cpus ? sharing.of_task : sharing.of_host;
  int cpus = limits.affinity / sharing_affinity;
  // All tasks of a host are taken to be in one cgroup: binding divides CPUs and no quota.
  if (limits.quota) cpus = std::min(cpus, limits.of_quota() / sharing.of_host);
  const int given = options.cluster.num_cpus;  // to this task
  return given > 0 ? std::min(cpus, given / sharing.of_task) : cpus;
}

}  // namespace

int tasks_of_host(const TrainOptions& options, const Membership* membership) {
  if (has_servers(options)) return options.cluster.local_size;
  if (membership == nullptr) return 1;
  const std::vector<Member>& members = membership->members();
  const Member& me = members[static_cast<std::size_t>(membership->index())];
  return static_cast<int>(std::ranges::count(members, me.host, &Member::host));
}

int count_replicas(const TrainOptions& options, const Membership* membership) {
  if (!is_synchronous(options.strategy.consistency) || has_stages(options)) return 1;
  if (has_servers(options)) return options.cluster.world_size;
  if (membership == nullptr) return options.strategy.replicas;
  const Member& last = membership->members().back();
  return last.first_replica + last.num_replicas;
}

int expected_replicas(const TrainOptions& options) {
  if (!is_synchronous(options.strategy.consistency) || has_stages(options)) return 1;
  return options.cluster.world_size * options.strategy.replicas;
}

double learning_rate_factor(const TrainOptions& options, int replicas, std::int64_t global_batch) {
  if (options.learning_rate_scale == LearningRateScale::kNone) return 1.0;
  if (options.learning_rate_scale == LearningRateScale::kInverseWorkers) {
    return 1.0 / count_workers(options);
  }
  const double of_replica = static_cast<double>(global_batch) / static_cast<double>(replicas);
  const double reference = options.reference_batch_size > 0
                               ? static_cast<double>(options.reference_batch_size)
                               : of_replica;
  // If training begins with sums of gradients, the rate of these sums is kept in rounds. Source:
  // the reference code of Lin et al. 2018, section 3.
  const bool is_of_worker =
      strategy_of(options).has_rounds && !options.strategy.local.local_from.has_value();
  const double of_update =
      is_of_worker ? of_replica : static_cast<double>(samples_per_update(options, global_batch));
  const double ratio = of_update / reference;
  return options.learning_rate_scale == LearningRateScale::kLinear ? ratio : std::sqrt(ratio);
}

ScheduleOptions schedule_of(const TrainOptions& options, int replicas, std::int64_t global_batch,
                            std::int64_t steps_per_epoch) {
  ScheduleOptions schedule = options.schedule;
  const TrainLoopOptions& loop = options.loop;
  schedule.total_epochs =
      loop.total_steps ? static_cast<double>(*loop.total_steps * batches_per_update(options)) /
                             static_cast<double>(steps_per_epoch)
                       : static_cast<double>(loop.total_epochs);
  if (options.learning_rate_scale == LearningRateScale::kInverseWorkers) {
    schedule.learning_rate /= count_workers(options);  // rounds once, unlike a factor
    return schedule;
  }
  const double factor = learning_rate_factor(options, replicas, global_batch);
  // Warm-up starts at the rate of the reference batch. Source: Goyal et al. 2017, section 2.2.
  if (factor > 1.0) schedule.warmup_start = schedule.learning_rate;
  schedule.learning_rate *= factor;
  return schedule;
}

void require_whole_round(const TrainOptions& options, std::int64_t dataset_size,
                         std::int64_t global_batch) {
  if (!has_rounds(options)) return;
  const LocalUpdateOptions& local = options.strategy.local;
  const auto per_epoch = static_cast<double>(dataset_size / global_batch);
  const std::int64_t total = remaining_steps(options.loop, {}, dataset_size, global_batch);
  const double epochs = local.local_from.value_or(0.0);
  const double run_epochs = static_cast<double>(total) / per_epoch;
  if (local.local_from && epochs >= run_epochs) {
    throw UsageError(fmt::format(
        "--local-from {:g}: the run ends at epoch {:.6g}, so it would have no round; give an "
        "earlier epoch, or choose --strategy {}",
        epochs, run_epochs, kMultiWorkerMirrored));
  }
  const std::int64_t steps = total - static_cast<std::int64_t>(std::ceil(epochs * per_epoch));
  if (local.sync_every <= steps) return;
  throw UsageError(fmt::format(
      "--sync-every {}: the whole run has {} steps{}, so the workers would exchange only at its "
      "end; give at most {}, or train longer",
      local.sync_every, steps, local.local_from ? fmt::format(" from epoch {:g} on", epochs) : "",
      steps));
}

int count_workers(const TrainOptions& options) {
  if (has_stages(options)) return 1;
  return options.cluster.world_size * options.strategy.replicas;
}

std::optional<LocalUpdateOptions> local_updates_of(const TrainOptions& options) {
  if (!has_rounds(options)) return std::nullopt;
  LocalUpdateOptions local = options.strategy.local;
  if (pushes_displacements(local)) {
    StrategyOptions strategy = options.strategy;
    strategy.parameter_server.cluster = options.cluster;
    local.outer_learning_rate = shard_outer_options(strategy).learning_rate;
  }
  return local;
}

std::int64_t samples_per_update(const TrainOptions& options, std::int64_t batch) {
  return batch * batches_per_update(options);
}

std::int64_t choose_batch(const TrainOptions& options, int replicas, std::int64_t dataset_size,
                          StrategyOptions& strategy) {
  const std::int64_t global_batch =
      options.global_batch_size > 0
          ? options.global_batch_size
          : strategy.batch_size_per_replica * strategy.micro_batches * replicas;
  check(global_batch >= 1 && replicas >= 1, "a step has samples, and replicas to train them");
  strategy.batch_size_per_replica = share_of_replica(global_batch, 0, replicas).end;
  if (global_batch > dataset_size) {
    throw UsageError(
        fmt::format("batch of {}: data {} has only {} samples to train on; choose a smaller batch",
                    global_batch, options.data, dataset_size));
  }
  return global_batch;
}

void require_batch_norm_values(const Graph& graph, const TrainOptions& options, int replicas,
                               std::int64_t global_batch) {
  const StrategyOptions& strategy = options.strategy;
  if (fewest_normalized(strategy, replicas, global_batch) > 1) return;
  const auto single = std::ranges::find_if(graph.nodes, [](const Node& node) {
    return std::holds_alternative<BatchNormOp>(node.operation) &&
           num_elements(node.shape) == node.shape.back();
  });
  if (single == graph.nodes.end()) return;
  StrategyOptions synchronized = strategy;
  synchronized.batch_norm = BatchNormStatistics::kSync;
  const bool helps_sync = is_synchronous(strategy.consistency) && !has_servers(options) &&
                          fewest_normalized(synchronized, replicas, global_batch) > 1;
  throw UsageError(fmt::format(
      "--model {}: batch norm {} sees one value per channel and returns only its bias: its output "
      "{} "
      "has one pixel, and {}; expected two samples or more: give {}{}{}",
      options.model, single->name, to_string(single->shape),
      replicas == 1 && strategy.micro_batches == 1
          ? std::string("a step has one sample")
          : fmt::format("a batch of {} leaves {} one sample", global_batch,
                        strategy.micro_batches > 1 ? "a part of --accumulate" : "a replica"),
      options.global_batch_size > 0
          ? fmt::format("--batch-size {}", 2 * replicas * strategy.micro_batches)
          : std::string("--batch-size-per-replica 2"),
      strategy.micro_batches > 1 ? " or a smaller --accumulate" : "",
      helps_sync ? " or --batch-norm sync" : ""));
}

int choose_lanes(const TrainOptions& options, const Membership* membership,
                 const CpuLimits& limits) {
  if (options.strategy.lanes > 0) return options.strategy.lanes;
  return lanes_of(cpus_of_each(options, sharing_of(options, membership), limits), 1);
}

Autotune choose_autotune(const TrainOptions& options, const Membership* membership) {
  constexpr std::int64_t kMostBytes = std::int64_t{1} << 30;
  Autotune autotune = options.input.autotune;
  const int replicas = options.strategy.replicas;
  const Sharing sharing = sharing_of(options, membership);
  const Sharing tasks = {.of_task = std::max(1, sharing.of_task / replicas),
                         .of_host = std::max(1, sharing.of_host / replicas)};
  autotune.cpus = std::max(1, cpus_of_each(options, tasks, cpu_limits()));
  const bool is_on_cpu = options.strategy.devices.front().kind == DeviceKind::kCpu;
  autotune.lanes = replicas * (is_on_cpu ? options.strategy.lanes : 1);
  const std::int64_t free_bytes = available_memory() / 8 / tasks.of_host;
  if (free_bytes > 0) autotune.most_bytes = std::min(kMostBytes, free_bytes);
  return autotune;
}

int lanes_of(int cpus, int sharing) noexcept {
  return std::clamp(cpus / sharing, 1, kMostDefaultLanes);
}

int default_lanes() { return lanes_of(usable_cpu_count(), 1); }

}  // namespace syncopate
