// `syncopate train`, and programs with their own workload: meets the other tasks and starts the
// run.
#include <cstdlib>
#include <iostream>
#include <optional>
#include <ostream>
#include <string>

#include "deploy/commands/commands.h"
#include "models/base/open_files.h"
#include "ps/client/client_errors.h"
#include "strategies/cluster/prepare_rendezvous.h"
#include "worker/run/exit_codes.h"
#include "worker/run/job_membership.h"
#include "worker/run/process_end.h"
#include "worker/run/run_devices.h"
#include "worker/run/task_run.h"
#include "worker/run/training_session.h"
#include "worker/train/stop_signal.h"

namespace syncopate {

bool wants_mpi(const TrainOptions& options) {
  return options.strategy.collective == "mpi" || meets_through_mpi(options);
}

int run_train(const TrainOptions& given, const Workload& workload, StopSignal& signals,
              MpiSession* mpi, std::ostream& out) {
  if (given.cluster.role == Role::kServer) return run_train_server(given, signals);
  if (given.cluster.role == Role::kEvaluator)
    return run_train_evaluator(given, workload, signals, out);
  std::optional<EarlyStop> early_stop;
  early_stop.emplace(signals, [&given](std::string_view signal) {
    const EarlyEnd end = early_end(given, signal);
    std::cerr << "syncopate: " + end.line + "\n" << std::flush;
    // Ends the process on a signal: the main thread may be in a wait without end.
    std::_Exit(end.exit_code);
  });
  TrainOptions options = given;
  require_open_files(needed_open_files(options.cluster), place_in_job(options.cluster));
  find_devices(options);
  warn_of_threads(options);
  const auto trace = open_trace(options);
  const auto nonce_file = share_nonce(options.cluster, options.rendezvous_timeout);
  prepare_rendezvous(options.cluster);
  const auto membership = meet(options, mpi);
  try {
    return TaskRun(options, {.workload = workload,
                             .signals = signals,
                             .early_stop = early_stop,
                             .membership = membership.get(),
                             .trace = trace.get(),
                             .end_process =
                                 [](const std::string& reason) {
                                   std::cerr << "syncopate: " + reason + "\n" << std::flush;
                                   std::_Exit(kExitFailed);
                                 }})
        .run(out);
  } catch (const ps::JobOver& over) {
    std::cerr << "syncopate: " + std::string(over.what()) + ": nothing was left to train\n"
              << std::flush;
    return 0;
  }
}

}  // namespace syncopate
