// The program `syncopate`: parses arguments and environment, runs a command, and is the only place
// where the process ends. Every failure prints one line on stderr and sets the exit code: 2 for
// wrong usage, 1 for all other errors.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "deploy/commands/commands.h"
#include "models/base/errors.h"
#include "models/base/open_files.h"
#include "strategies/cluster/cluster_spec.h"
#include "strategies/collective/mpi_session.h"
#include "worker/run/exit_codes.h"
#include "worker/train/stop_signal.h"

namespace syncopate {
namespace {

std::unique_ptr<MpiSession> start_mpi(const TrainOptions& options) {
  const std::string task = place_in_job(options.cluster);
  return std::make_unique<MpiSession>(MpiStartLimit{
      .timeout = options.rendezvous_timeout, .end_process = [task](const std::string& line) {
        std::cerr << "syncopate: " + task + ": " + line + "\n" << std::flush;
        // Ends the process: the main thread waits inside MPI.
        std::_Exit(kExitFailed);
      }});
}

struct RunCommand {
  std::unique_ptr<MpiSession>& mpi;

  int operator()(const TrainOptions& options) const {
    StopSignal signals;  // must exist before the first thread, and MPI starts threads
    if (wants_mpi(options)) mpi = start_mpi(options);
    const int exit_code = run_train(options, signals, mpi.get(), std::cout);
    if (mpi != nullptr) mpi->close();
    return exit_code;
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

// True if the reader of standard output, such as `head`, has closed its end of the pipe.
bool is_output_pipe_closed() {
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

int report_failure(std::string message, int exit_code) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::cerr << "syncopate: " + message + "\n" << std::flush;
  return exit_code;
}

int run(const std::vector<std::string>& arguments, std::unique_ptr<MpiSession>& mpi) {
  try {
    const CommandOptions command = parse_command_line(arguments, Environment::of_process());
    const int exit_code = std::visit(RunCommand{mpi}, command);
    mpi.reset();
    if (std::cout || is_output_pipe_closed()) return exit_code;
    return report_failure("cannot write to standard output", kExitFailed);
  } catch (const UsageError& error) {
    return report_failure(error.what(), kExitUsage);
  } catch (const UnavailableError& error) {
    return report_failure(error.what(), kExitUsage);
  } catch (const std::bad_alloc&) {
    return report_failure("out of memory; try a smaller batch or network", kExitFailed);
  } catch (const std::exception& error) {
    return report_failure(error.what(), kExitFailed);
  }
}

}  // namespace
}  // namespace syncopate

int main(int argc, char** argv) {
  // SIGPIPE is ignored so that training goes on when the reader of a pipe exits; the write fails
  // instead.
  std::signal(SIGPIPE, SIG_IGN);
  syncopate::raise_open_file_limit();
  std::unique_ptr<syncopate::MpiSession> mpi;
  const int exit_code =
      syncopate::run(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), mpi);
  // The MPI session is still open only if the run failed. MPI_Finalize could wait for the other
  // tasks without end, so MPI_Abort ends them.
  if (mpi != nullptr) mpi->abort(exit_code);
  return exit_code;
}
