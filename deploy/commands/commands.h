// Declares the commands of the program. Each command takes its options, does its work and returns
// the exit code. Results go to `out`, notes go to stderr, and errors are thrown.
#pragma once

#include <iosfwd>

#include "deploy/cli/command_line.h"
#include "strategies/collective/mpi_session.h"
#include "worker/run/workload.h"
#include "worker/train/stop_signal.h"

namespace syncopate {

// Trains a workload (worker/run/run_workload.h). Returns the exit code: 0 if training is complete,
// 75 if it was stopped on request after a checkpoint was written, 1 if it was stopped and nothing
// was saved. mpi: the MPI session of the process if wants_mpi(given) is true, else null.
int run_train(const TrainOptions& given, const Workload& workload, StopSignal& signals,
              MpiSession* mpi, std::ostream& out);
// True if the tasks use MPI to sum gradients or for their rendezvous.
bool wants_mpi(const TrainOptions& options);
// These functions run one parameter server. run_serve() is for a server started with `syncopate
// serve`. run_train_server() is for a task of `syncopate train` to which the cluster gave the
// server role.
int run_serve(const ServeOptions& options, StopSignal& signals);
int run_train_server(const TrainOptions& options, StopSignal& signals);
// Runs an evaluator beside a job. The evaluator evaluates each checkpoint when the job has written
// it.
int run_train_evaluator(const TrainOptions& options, const Workload& workload, StopSignal& signals,
                        std::ostream& out);
int run_evaluate(const EvaluateOptions& options, std::ostream& out);
int run_info(const InfoOptions& options, std::ostream& out);
// Writes the weights of a checkpoint to a file for other programs.
int run_export(const ExportOptions& options, std::ostream& out);
// Prints the predicted class of each sample in the given files.
int run_predict(const PredictOptions& options, std::ostream& out);
// Prints the network of --model for the samples of --data.
int run_network(const NetworkOptions& options, std::ostream& out);
// Writes a data set as TFRecord files.
int run_convert(const ConvertOptions& options, std::ostream& out);
int run_convert_network(const ConvertOptions& options, std::ostream& out);
int run_cluster(const ClusterOptions& options, std::ostream& out);
// Runs `syncopate doctor`. Returns 0 if doctor found no error, else 1. mpi: the MPI session of the
// process if wants_mpi(asked.train) is true, else null.
int run_doctor(const DoctorOptions& asked, MpiSession* mpi, std::ostream& out);
// Prints or submits a job. Returns the exit code of sbatch; 0 if the script was only printed.
int run_sbatch(const SbatchOptions& options, std::ostream& out);
// Runs the roles of a job. Returns the worst of their exit codes; from worst to best the order is
// 2, 1, 75, 0.
int run_launch(const LaunchOptions& options, std::ostream& out);

}  // namespace syncopate
