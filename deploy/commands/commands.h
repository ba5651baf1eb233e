// The commands: each takes its options, does its work and returns the exit code. Results go to
// `out`, notes to stderr; what goes wrong is thrown.
#pragma once

#include <iosfwd>

#include "deploy/cli/command_line.h"
#include "strategies/collective/mpi_session.h"
#include "worker/train/stop_signal.h"

namespace syncopate {

// 0 done; 75 stopped on request after a checkpoint was written; 1 stopped with nothing saved.
// mpi: null unless wants_mpi().
int run_train(const TrainOptions& given, StopSignal& signals, MpiSession* mpi, std::ostream& out);
// Its tasks sum, or must meet, through MPI.
bool wants_mpi(const TrainOptions& options);
// A parameter server: started by hand, or because the cluster gave the task that role.
int run_serve(const ServeOptions& options, StopSignal& signals);
int run_train_server(const TrainOptions& options, StopSignal& signals);
// An evaluator beside a job: measures each checkpoint that appears.
int run_train_evaluator(const TrainOptions& options, StopSignal& signals, std::ostream& out);
int run_evaluate(const EvaluateOptions& options, std::ostream& out);
int run_info(const InfoOptions& options, std::ostream& out);
int run_cluster(const ClusterOptions& options, std::ostream& out);
// 0: it found nothing wrong; 1: an error. mpi: null unless wants_mpi(asked.train).
int run_doctor(const DoctorOptions& asked, MpiSession* mpi, std::ostream& out);
// The exit code of sbatch; 0 when the script was printed.
int run_sbatch(const SbatchOptions& options, std::ostream& out);
// The worst exit code of the roles: 2, then 1, then 75, then 0.
int run_launch(const LaunchOptions& options, std::ostream& out);

}  // namespace syncopate
