// The entry point of programs that train their own network on their own data set:
//
//   int main(int argc, char** argv) {
//     return syncopate::run_program(argc, argv, {.open_data = ..., .make_network = ...});
//   }
//
// Such a program is one task of a job, as `syncopate train` is. deploy/examples has one.
#pragma once

#include "worker/run/workload.h"

namespace syncopate {

// Trains the workload as `syncopate train` trains what --model and --data name, under any strategy,
// and returns the exit code for main. The arguments are flags of `syncopate train`; those that
// choose or change the network and the data are refused. The place in the job follows from flags
// and environment. A failure, also of the workload's functions, is printed as one line. Call it
// once, before the process starts threads: it handles signals, and ends the process itself when
// another task fails while this one is busy.
int run_program(int argc, char** argv, const Workload& workload);

}  // namespace syncopate
