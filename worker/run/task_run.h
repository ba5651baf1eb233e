// A training run of one task, from its options to its report: `syncopate train`, and programs with
// their own workload. It opens the inputs in the order that finds mistakes soonest. Only the chief
// writes files and prints results.
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

// One thread only, and one run.
class TaskRun {
 public:
  // What a run needs of its process. All of it outlives the run.
  struct Process {
    const Workload& workload;
    StopSignal& signals;
    std::optional<EarlyStop>& early_stop;  // ends when training begins
    Membership* membership = nullptr;      // null: a job of one task, or one with parameter servers
    Trace* trace = nullptr;                // null: nothing is recorded
    // Ends the process after a peer's failure: the training thread is busy elsewhere and its stack
    // cannot be unwound.
    PeerWatch::Act end_process;
  };

  // options: with the devices that find_devices() found. They must outlive the run.
  TaskRun(const TrainOptions& options, Process process);

  // Trains. Returns 0 when training is done, 75 when it stopped on request after writing a
  // checkpoint, 1 when it stopped with nothing saved. Throws what the steps throw, after the other
  // tasks were told.
  int run(std::ostream& out);

 private:
  void meet();   // watches the other tasks, which have met
  void open();   // takes the devices, opens the data and chooses sizes that follow from both
  void build();  // makes the network and the strategy, and starts from the first values
  void train();
  int report(std::ostream& out);

  void choose_threads();
  void train_synchronously(const StopPoll& stop);
  void describe();

  const TrainOptions& given_;
  const Process process_;
  const bool is_chief_;
  // Destroyed in the opposite order.
  std::unique_ptr<ProgressDisplay> display_;
  std::optional<PeerWatch> watch_;
  TrainingSession session_;
  RunStart start_;
  TrainOutcome outcome_;
  TrainOptions options_;  // as given, completed by open()
  std::unique_ptr<DeviceMonitor> monitor_;
  int replicas_ = 0;               // of all tasks
  std::int64_t global_batch_ = 0;  // samples per step over all replicas
  ScheduleOptions schedule_options_;
  std::optional<Schedule> schedule_;
};

}  // namespace syncopate
