// The entry point of programs that train their own network on their own data set:
//
//   int main(int argc, char** argv) {
//     return syncopate::run_program(argc, argv, {.open_data = ..., .make_network = ...});
//   }
//
// Like `syncopate train`, such a program is one task of a job. deploy/examples has an example.
#pragma once

#include "worker/run/workload.h"

namespace syncopate {

// Trains the workload in the same way as `syncopate train`, under any strategy, and returns the
// exit code for main. The arguments are flags of `syncopate train`, without the flags that choose
// or change the network and the data. The task's place in the job follows from flags and
// environment. A failure, also in the workload's functions, is printed as one line. Call it once,
// before the process starts threads, because it blocks and handles signals. If another task fails
// while this task is busy, run_program() ends the process and does not return.
int run_program(int argc, char** argv, const Workload& workload);

}  // namespace syncopate
