// Runs a command of `syncopate` or of a program with its own workload. It sets up the process,
// reports a failure as one line on stderr and an exit code, and ends MPI.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/collective/mpi_session.h"
#include "worker/run/train_options.h"
#include "worker/run/workload.h"

namespace syncopate {

// A command of the program. run_command_process() calls it with the arguments after the program's
// name and returns the exit code for the process: the code that the command returned, 2 if it threw
// a UsageError or an UnavailableError, or 1 if it threw another error. run_command_process() prints
// these errors. A command that starts MPI stores the session in `mpi`.
using Command =
    std::function<int(const std::vector<std::string>& arguments, std::unique_ptr<MpiSession>& mpi)>;
int run_command_process(int argc, char** argv, const Command& command);

// Prints a failure of a program in one line on standard error. Returns `exit_code`.
int report_failure(std::string_view program, std::string message, int exit_code);
// Prints the exception that is being handled; call it in a catch block. If memory or threads were
// exhausted, also prints advice. Returns the exit code: 2 for a UsageError or an UnavailableError,
// 1 for other errors.
int report_exception(std::string_view program);

// Starts MPI for a task with these options. Ends the process with an error if the start takes
// longer than options.rendezvous_timeout.
std::unique_ptr<MpiSession> start_mpi(const TrainOptions& options);

// Trains as one task of a job: handles signals, starts MPI if necessary and calls run_train().
int train_as_task(const TrainOptions& options, const Workload& workload,
                  std::unique_ptr<MpiSession>& mpi);

}  // namespace syncopate
