// Runs a command in the program `syncopate` and in programs with their own workload: sets up the
// process, turns failures into one line on stderr and an exit code, and ends MPI.
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

// Runs a command with the arguments behind the program's name and returns the exit code of the
// process: the command's, or 2 for wrong usage and 1 for other errors. Errors are printed. The
// command stores the MPI session that it starts.
using Command =
    std::function<int(const std::vector<std::string>& arguments, std::unique_ptr<MpiSession>& mpi)>;
int run_command_process(int argc, char** argv, const Command& command);

// Prints a failure of a program in one line on standard error. Returns the exit code.
int report_failure(std::string_view program, std::string message, int exit_code);
// Prints the exception that is being handled, with what to do where memory or threads are limited.
// Returns the exit code: 2 for wrong usage, 1 for other errors. Called in a catch block.
int report_exception(std::string_view program);

// Starts MPI for a task with these options.
std::unique_ptr<MpiSession> start_mpi(const TrainOptions& options);

// Trains as one task of a job: handles signals, starts MPI if necessary and calls run_train().
int train_as_task(const TrainOptions& options, const Workload& workload,
                  std::unique_ptr<MpiSession>& mpi);

}  // namespace syncopate
