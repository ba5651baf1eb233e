// Sizes of a run that follow from its options, its tasks and its data set: replicas, batches,
// threads, learning rate.
#pragma once

#include <cstdint>
#include <optional>

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

// Returns what count_replicas() will return after the rendezvous, assuming that all tasks have as
// many replicas as this task.
int expected_replicas(const TrainOptions& options);

// Returns the number of workers of an asynchronous job, which is the number of replicas of all
// tasks. A pipeline counts as one worker.
int count_workers(const TrainOptions& options);

// Returns the number of samples per step over all replicas, and stores in
// `strategy.batch_size_per_replica` the largest number of these samples that one replica gets.
// Throws UsageError for a batch that is larger than the data set.
std::int64_t choose_batch(const TrainOptions& options, int replicas, std::int64_t dataset_size,
                          StrategyOptions& strategy);

// Throws UsageError if a batch norm of the network gets a single value per channel in a step, which
// is a single sample of one pixel. The output of this batch norm would not depend on the sample.
// replicas: from count_replicas(). global_batch: from choose_batch().
void require_batch_norm_values(const Graph& graph, const TrainOptions& options, int replicas,
                               std::int64_t global_batch);

// Returns the settings of local updates of this run, with the learning rate of the outer step that
// it uses; nullopt if workers do not train in rounds.
std::optional<LocalUpdateOptions> local_updates_of(const TrainOptions& options);

// Returns the number of samples per update. batch: the samples per step of all synchronous
// replicas, or of each asynchronous worker.
std::int64_t samples_per_update(const TrainOptions& options, std::int64_t batch);

// Returns the default number of lanes (compute threads) of a replica that has all usable CPUs of
// this process to itself. The number is limited to what a usual batch can use.
int default_lanes();
// Returns the default number of lanes of each of `sharing` replicas that share `cpus` CPUs; at
// least 1.
int lanes_of(int cpus, int sharing) noexcept;

// Returns the number of lanes of a replica: the value of --threads if this flag is given, or else
// the number of CPUs of this host divided by the number of replicas of all tasks on this host.
// Tasks that are bound to different CPUs divide only the quota of their cgroup. A task uses at most
// the CPUs that Slurm gave to it.
int choose_lanes(const TrainOptions& options, const Membership* membership,
                 const CpuLimits& limits = cpu_limits());

// Returns the CPUs and the memory that the input of this task may use if it tunes itself.
// Autotune::cpus is the number of CPUs of this task. Autotune::lanes is the number of threads that
// train on these CPUs: the lanes of CPU replicas, or one thread per GPU. The memory is an eighth of
// the free memory, divided among the tasks of this host, and at most 1 GiB. options: must have the
// number of lanes that choose_lanes() returned.
Autotune choose_autotune(const TrainOptions& options, const Membership* membership);

// Returns the factor by which --learning-rate-scale multiplies --learning-rate. replicas: from
// count_replicas(). global_batch: from choose_batch(). With backup workers the factor follows from
// the samples per update, not from `global_batch`; with rounds, from the samples of one worker.
double learning_rate_factor(const TrainOptions& options, int replicas, std::int64_t global_batch);

// Throws UsageError if the run is shorter than a round of --sync-every steps, or ends before its
// first round, under a strategy with rounds.
void require_whole_round(const TrainOptions& options, std::int64_t dataset_size,
                         std::int64_t global_batch);

// Returns the learning rate schedule of this run, scaled as --learning-rate-scale says.
ScheduleOptions schedule_of(const TrainOptions& options, int replicas, std::int64_t global_batch,
                            std::int64_t steps_per_epoch);

}  // namespace syncopate
