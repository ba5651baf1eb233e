// The messages of a training run at the start and at the end.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "models/graph/graph.h"
#include "models/optim/schedule.h"
#include "strategies/strategy.h"
#include "worker/input/dataset.h"
#include "worker/run/train_options.h"
#include "worker/train/progress.h"
#include "worker/train/train_loop.h"

namespace syncopate {

// Describes the outer step of local updates, such as "diloco: learning rate 0.7, Nesterov momentum
// 0.9". Throws UsageError for an unknown name.
std::string describe_outer_step(const LocalUpdateOptions& options);

// Shows the network, the data and the tasks before the first step. global_batch: samples per update
// of all synchronous replicas.
void describe_run(const TrainOptions& options, const Graph& graph, const DataSplits& data,
                  Strategy& strategy, const ScheduleOptions& schedule, std::int64_t global_batch,
                  ProgressDisplay& display);

// Returns the summary of a run that was not stopped. In an asynchronous job, only the task to which
// the last snapshot was assigned calls this.
Summary summary_of(const TrainOptions& options, const Graph& graph, std::int64_t global_batch,
                   Strategy& strategy, const TrainOutcome& outcome);

void print_result(const TrainOptions& options, const Summary& summary, const TrainOutcome& outcome,
                  std::ostream& out);

// Shows that the run was stopped, and the checkpoint that was saved. Returns the exit code: 75 if
// any task wrote a checkpoint, else 1.
int report_stop(const TrainOutcome& outcome, ProgressDisplay& display);

}  // namespace syncopate
