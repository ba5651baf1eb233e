// Numbers that follow from a run's flags once it is known who takes part and how much data there
// is.
#pragma once

#include <cstdint>

#include "models/optim/schedule.h"
#include "strategies/cluster/membership.h"
#include "worker/run/train_options.h"

namespace syncopate {

bool has_servers(const TrainOptions& options);

// How many replicas' gradients make one update, over all tasks.
int count_replicas(const TrainOptions& options, const Membership* membership);

// The same before tasks have met, each with as many replicas as this one.
int expected_replicas(const TrainOptions& options);

// Of all replicas, in this process or over all tasks, that train without a common step.
int count_workers(const TrainOptions& options);

// Samples of a step over all replicas; the largest share of one is put into `strategy`. Throws
// UsageError for a batch that is larger than the data.
std::int64_t choose_batch(const TrainOptions& options, int replicas, std::int64_t dataset_size,
                          StrategyOptions& strategy);

// `batch`: of all replicas that keep step, or else of each worker.
std::int64_t samples_per_update(const TrainOptions& options, std::int64_t batch);

// Lanes of a replica when nobody says: the CPUs this process may use, but not more than a usual
// batch feeds.
int default_lanes(int sharing = 1);
// The same for a number of CPUs that `sharing` replicas divide among them; at least 1.
int lanes_of(int cpus, int sharing) noexcept;

// Compute lanes of a replica where nobody chose: the CPUs, shared out over the replicas of all
// tasks that are seen to be on this host.
int choose_lanes(const TrainOptions& options, const Membership* membership);

// The learning rate over this run's epochs, scaled as --learning-rate-scale says.
ScheduleOptions schedule_of(const TrainOptions& options, int replicas, std::int64_t global_batch,
                            std::int64_t steps_per_epoch);

}  // namespace syncopate
