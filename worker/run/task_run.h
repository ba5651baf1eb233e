// A training run of one task, from its options to its report. Used by `syncopate train` and by
// programs with their own workload. The run checks its inputs in the order that finds mistakes of
// the user soonest. Only the chief writes files and prints results.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>

#include "models/backend/device_load.h"
#include "models/base/trace.h"
#include "models/optim/schedule.h"
#include "strategies/cluster/membership.h"
#include "worker/run/process_end.h"
#include "worker/run/run_start.h"
#include "worker/run/train_options.h"
#include "worker/run/training_session.h"
#include "worker/run/workload.h"
#include "worker/train/progress.h"
#include "worker/train/stop_signal.h"
#include "worker/train/train_loop.h"

namespace syncopate {

// Runs the training of one task. run() may be called only once. One thread only.
class TaskRun {
 public:
  // The objects of the process that a run uses. All these objects must outlive the run.
  struct Process {
    const Workload& workload;
    StopSignal& signals;
    std::optional<EarlyStop>& early_stop;  // destroyed by the run when training begins
    // Null in a job of one task and in a job with parameter servers.
    Membership* membership = nullptr;
    Trace* trace = nullptr;  // null: nothing is recorded
    // Ends the process after a peer's failure if the training thread is busy and cannot unwind its
    // stack.
    PeerWatch::Act end_process;
  };

  // options: have the devices that find_devices() found; must outlive the run.
  TaskRun(const TrainOptions& options, Process process);

  // Trains. Returns the exit code: 0 if training is complete, 75 if training was stopped on request
  // and a checkpoint was written, 1 if training was stopped and nothing was saved. Reports an
  // exception of a step to the other tasks and throws it again.
  int run(std::ostream& out);

 private:
  void meet();  // starts to watch the other tasks for failures
  // Takes the devices, opens the data, and chooses the sizes that follow from devices and data.
  void open();
  void build();  // makes the network and the strategy, and restores the initial values
  void train();
  int report(std::ostream& out);

  void choose_threads();
  void train_synchronously(const StopPoll& stop);
  void describe();

  const TrainOptions& given_;
  const Process process_;
  const bool is_chief_;
  // The members are destroyed in reverse order, so an object may use the objects above it.
  std::unique_ptr<ProgressDisplay> display_;
  std::optional<PeerWatch> watch_;
  TrainingSession session_;
  RunStart start_;
  TrainOutcome outcome_;
  TrainOptions options_;  // a copy of given_, completed by open()
  std::unique_ptr<DeviceMonitor> monitor_;
  int replicas_ = 0;               // number of replicas of all tasks
  std::int64_t global_batch_ = 0;  // samples per step over all replicas
  ScheduleOptions schedule_options_;
  std::optional<Schedule> schedule_;
};

}  // namespace syncopate
