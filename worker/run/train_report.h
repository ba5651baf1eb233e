// What a training run says at its beginning and at its end.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "models/optim/schedule.h"
#include "strategies/strategy.h"
#include "worker/run/run_data.h"
#include "worker/run/train_options.h"
#include "worker/train/progress.h"
#include "worker/train/train_loop.h"

namespace syncopate {

// What is trained, on what, and who takes part; before the first step.
// global_batch: samples of an update, over all replicas that keep step.
void describe_run(const TrainOptions& options, const Graph& graph, const DataSplits& data,
                  Strategy& strategy, const ScheduleOptions& schedule, std::int64_t global_batch,
                  ProgressDisplay& display);

// Of a run that was not stopped. Where replicas do not keep step: on the task whose outcome has a
// test result.
Summary summary_of(const TrainOptions& options, std::int64_t global_batch, Strategy& strategy,
                   const TrainOutcome& outcome);

void print_result(const TrainOptions& options, const Summary& summary, const TrainOutcome& outcome,
                  std::ostream& out);

// Says what was saved when the run was asked to stop, and returns the exit code: 75 when a
// checkpoint stands, whoever wrote it, else 1.
int report_stop(const TrainOutcome& outcome, ProgressDisplay& display);

}  // namespace syncopate
