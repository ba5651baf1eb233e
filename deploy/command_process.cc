#include "deploy/command_process.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <new>
#include <system_error>

#include "deploy/commands/commands.h"
#include "models/base/errors.h"
#include "models/base/open_files.h"
#include "models/base/process_limits.h"
#include "models/base/standard_streams.h"
#include "strategies/cluster/cluster_spec.h"
#include "worker/run/exit_codes.h"
#include "worker/train/stop_signal.h"

namespace syncopate {
namespace {

int run(const Command& command, const std::vector<std::string>& arguments,
        std::unique_ptr<MpiSession>& mpi) {
  try {
    const int exit_code = command(arguments, mpi);
    mpi.reset();
    if (StandardStreams::is_output_complete()) return exit_code;
    return report_failure("syncopate", "cannot write to standard output", kExitFailed);
  } catch (...) {
    return report_exception("syncopate");
  }
}

}  // namespace

int report_failure(std::string_view program, std::string message, int exit_code) {
  std::replace(message.begin(), message.end(), '\n', ' ');
  std::cerr << std::string(program) + ": " + message + "\n" << std::flush;
  return exit_code;
}

int report_exception(std::string_view program) {
  try {
    throw;
  } catch (const UsageError& error) {
    return report_failure(program, error.what(), kExitUsage);
  } catch (const UnavailableError& error) {
    return report_failure(program, error.what(), kExitUsage);
  } catch (const std::bad_alloc&) {
    return report_failure(
        program, "out of memory: " + memory_advice() + "; or try a smaller batch or network",
        kExitFailed);
  } catch (const std::system_error& error) {
    const bool lacks_threads = error.code() == std::errc::resource_unavailable_try_again;
    return report_failure(program,
                          lacks_threads ? "the system starts no more threads: " + thread_advice()
                                        : std::string(error.what()),
                          kExitFailed);
  } catch (const std::exception& error) {
    return report_failure(program, error.what(), kExitFailed);
  } catch (...) {  // of a user's program
    return report_failure(program, "an exception of an unknown type was thrown", kExitFailed);
  }
}

int run_command_process(int argc, char** argv, const Command& command) {
  const StandardStreams streams;
  raise_open_file_limit();
  adapt_to_limited_address_space();
  std::unique_ptr<MpiSession> mpi;
  const int exit_code =
      run(command, std::vector<std::string>(argv + std::min(argc, 1), argv + argc), mpi);
  // The MPI session is still open only if the run failed. MPI_Finalize could wait for the other
  // tasks without end, so MPI_Abort ends them.
  if (mpi != nullptr) mpi->abort(exit_code);
  return exit_code;
}

std::unique_ptr<MpiSession> start_mpi(const TrainOptions& options) {
  const std::string task = place_in_job(options.cluster);
  return std::make_unique<MpiSession>(MpiStartLimit{
      .timeout = options.rendezvous_timeout, .end_process = [task](const std::string& line) {
        std::cerr << "syncopate: " + task + ": " + line + "\n" << std::flush;
        // Ends the process: the main thread waits inside MPI.
        std::_Exit(kExitFailed);
      }});
}

int train_as_task(const TrainOptions& options, const Workload& workload,
                  std::unique_ptr<MpiSession>& mpi) {
  StopSignal signals;  // must exist before the first thread, and MPI starts threads
  if (wants_mpi(options)) mpi = start_mpi(options);
  const int exit_code = run_train(options, workload, signals, mpi.get(), std::cout);
  if (mpi != nullptr) mpi->close();
  return exit_code;
}

}  // namespace syncopate
