// A job script for what `syncopate sbatch` was asked for.
#pragma once

#include <string>
#include <vector>

namespace syncopate {

// A job script that is filled in; 0 and empty: as the script has it.
struct SbatchOptions {
  std::string script;    // its name in job_scripts()
  std::string strategy;  // empty: the script says
  int nodes = 0;         // of the workers
  int tasks_per_node = 0;
  int cpus_per_task = 0;
  int servers = 0;
  int server_nodes = 1;
  std::string time;
  std::string partition;
  std::string server_partition;
  std::string account;
  std::string job_name;
  std::string container;
  std::string container_flags;  // of apptainer exec, words apart by blanks
  std::string program;
  std::string bench_program;
  std::vector<std::string> train_flags;
  std::string data;  // that they name
  bool uses_mpirun = false;
  bool print = false;
};

// Throws InternalError where a script lacks a line that is to be filled in.
std::string filled_script(const SbatchOptions& options);

}  // namespace syncopate
