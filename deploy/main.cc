// The program `syncopate`: parses arguments and environment and runs a command. Every failure
// prints one line on stderr and sets the exit code: 2 for wrong usage, 1 for all other errors.
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "deploy/command_process.h"
#include "deploy/commands/commands.h"
#include "worker/run/exit_codes.h"
#include "worker/run/run_workload.h"
#include "worker/train/stop_signal.h"

namespace syncopate {
namespace {

struct RunCommand {
  std::unique_ptr<MpiSession>& mpi;

  int operator()(const TrainOptions& options) const {
    return train_as_task(options, named_workload(options), mpi);
  }
  int operator()(const ServeOptions& options) const {
    StopSignal signals;  // must exist before the first thread
    return run_serve(options, signals);
  }
  int operator()(const EvaluateOptions& options) const { return run_evaluate(options, std::cout); }
  int operator()(const InfoOptions& options) const { return run_info(options, std::cout); }
  int operator()(const ExportOptions& options) const { return run_export(options, std::cout); }
  int operator()(const PredictOptions& options) const { return run_predict(options, std::cout); }
  int operator()(const NetworkOptions& options) const { return run_network(options, std::cout); }
  int operator()(const ConvertOptions& options) const { return run_convert(options, std::cout); }
  int operator()(const ClusterOptions& options) const { return run_cluster(options, std::cout); }
  int operator()(const LaunchOptions& options) const { return run_launch(options, std::cout); }
  int operator()(const DoctorOptions& options) const {
    if (wants_mpi(options.train)) mpi = start_mpi(options.train);
    const int exit_code = run_doctor(options, mpi.get(), std::cout);
    if (mpi != nullptr) mpi->close();
    return exit_code;
  }
  int operator()(const SbatchOptions& options) const { return run_sbatch(options, std::cout); }
  int operator()(const TextOptions& options) const {
    (options.is_error ? std::cerr : std::cout) << options.text << std::flush;
    return options.is_error ? kExitUsage : 0;
  }
};

int run_syncopate(const std::vector<std::string>& arguments, std::unique_ptr<MpiSession>& mpi) {
  const CommandOptions command = parse_command_line(arguments, Environment::of_process());
  return std::visit(RunCommand{mpi}, command);
}

}  // namespace
}  // namespace syncopate

int main(int argc, char** argv) {
  return syncopate::run_command_process(argc, argv, syncopate::run_syncopate);
}
