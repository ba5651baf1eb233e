// Sizes of a run that follow from its options, its tasks and its data set: replicas, batches,
// threads, learning rate.
#pragma once

#include <cstdint>

#include "models/base/resource_limits.h"
#include "models/graph/graph.h"
#include "models/optim/schedule.h"
#include "strategies/cluster/membership.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Returns the number of tasks of this run on this host, without servers.
int tasks_of_host(const TrainOptions& options, const Membership* membership);

// Returns the number of replicas, over all tasks, that contribute gradients to one update.
int count_replicas(const TrainOptions& options, const Membership* membership);

// Returns the result of count_replicas() before the tasks have met, if all tasks have as many
// replicas as this one.
int expected_replicas(const TrainOptions& options);

// Returns an asynchronous job's number of workers: the replicas of all tasks. A pipeline is one.
int count_workers(const TrainOptions& options);

// Returns the samples of a step over all replicas, and stores the largest share of a replica in
// `strategy`. Throws UsageError for a batch that is larger than the data set.
std::int64_t choose_batch(const TrainOptions& options, int replicas, std::int64_t dataset_size,
                          StrategyOptions& strategy);

// Throws UsageError if a batch norm of the network has a single value per channel in a step of
// these batches: a map of one pixel, and one sample at a time. Its output would not depend on the
// sample. options: with the flags of the run. replicas, global_batch: as choose_batch() has them.
void require_batch_norm_values(const Graph& graph, const TrainOptions& options, int replicas,
                               std::int64_t global_batch);

// Returns the samples per update. batch: of all synchronous replicas, or of each asynchronous
// worker.
std::int64_t samples_per_update(const TrainOptions& options, std::int64_t batch);

// Returns the default number of lanes (compute threads) of a replica that has all CPUs that this
// process can keep busy; limited to what a usual batch can use.
int default_lanes();
// The default number of lanes of a replica when `sharing` replicas divide `cpus` CPUs; at least 1.
int lanes_of(int cpus, int sharing) noexcept;

// Returns the lanes of a replica: --threads, or else the CPUs divided among the replicas of all
// tasks on this host. Tasks that are bound to different CPUs still share the quota of their cgroup.
// A task uses no more CPUs than Slurm gave it.
int choose_lanes(const TrainOptions& options, const Membership* membership,
                 const CpuLimits& limits = cpu_limits());

// Returns what the input of this task may use where it tunes itself. It may use the CPUs of this
// task; the consumer uses a part of them: the lanes of CPU replicas, or a thread for each GPU. It
// may use an eighth of the free memory, up to 1 GiB. options: with the lanes that choose_lanes()
// returned.
Autotune choose_autotune(const TrainOptions& options, const Membership* membership);

// Returns the factor of --learning-rate that --learning-rate-scale stands for. `replicas` and
// `global_batch` come from count_replicas() and choose_batch(). With backup workers, the rate grows
// with the number of samples in an update.
double learning_rate_factor(const TrainOptions& options, int replicas, std::int64_t global_batch);

// Returns the learning rate schedule of this run, scaled as --learning-rate-scale says.
ScheduleOptions schedule_of(const TrainOptions& options, int replicas, std::int64_t global_batch,
                            std::int64_t steps_per_epoch);

}  // namespace syncopate
