// Fits the tasks, CPUs and GPUs that a job requests to what its flags of train use. Called by the
// command line of `syncopate sbatch`, in the order of these functions.
#pragma once

#include "deploy/slurm/job_script.h"
#include "worker/run/train_options.h"

namespace syncopate {

// The largest number of tasks of a node, and of CPUs of a task, that a job may request.
inline constexpr int kMostJobTasks = 1024;

// Gives each GPU of a node a task, or as many GPUs as a task has replicas, and says which GPUs
// would stay idle.
void fit_tasks(const TrainOptions& train, SbatchOptions& options);

// Requests as many CPUs as the replicas of a task use. train would refuse fewer, but only after the
// job has waited in the queue and started. Throws UsageError if --cpus-per-task gives fewer.
void fit_cpus(const TrainOptions& train, SbatchOptions& options);

// Requests the GPUs that the flags of train need, for all tasks of a node, if no flag requests any.
// train would find none, but only after the job has waited in the queue and started.
void fit_gpus(const TrainOptions& train, SbatchOptions& options);

}  // namespace syncopate
