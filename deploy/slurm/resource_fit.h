// Makes a Slurm job request as many tasks, CPUs and GPUs as its flags of train use. The command
// line of `syncopate sbatch` calls the functions in the order of their declarations.
#pragma once

#include "deploy/slurm/job_script.h"
#include "worker/run/train_options.h"

namespace syncopate {

// The largest number of tasks per node, and of CPUs per task, that a job may request.
inline constexpr int kMostJobTasks = 1024;

// Sets the number of tasks per node so that each task has one GPU per replica. Does nothing if the
// user gave this number. Adds a note to options.notes if GPUs of a node would stay idle.
void fit_tasks(const TrainOptions& train, SbatchOptions& options);

// Requests as many CPUs per task as its replicas use. Throws UsageError if --cpus-per-task gives
// less than one CPU per replica on CPUs; train would refuse that, too, but only after the job has
// waited in the queue.
void fit_cpus(const TrainOptions& train, SbatchOptions& options);

// Requests the GPUs that the tasks of a node need, if no flag requests GPUs. Otherwise train would
// fail because it finds no GPU, but only after the job has waited in the queue.
void fit_gpus(const TrainOptions& train, SbatchOptions& options);

}  // namespace syncopate
