// The job scripts of this folder, which are part of the program so that one file is enough on a
// cluster, and scripts with values filled in, as a user would with an editor.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

struct JobScriptRow {
  std::string_view name;  // "multi_node": of multi_node.sbatch
  std::string_view text;
};
std::span<const JobScriptRow> job_scripts();

class JobScript {
 public:
  explicit JobScript(std::string_view text);

  // Of a heterogeneous job; 1 otherwise.
  int components() const;
  // "#SBATCH --name=value" in that component, from 0 on. A line that two # leave out counts from
  // then on. False when there is none.
  bool set_option(int component, std::string_view name, std::string_view value);
  // The line that begins with "name=" becomes "name=" and `shell_text` as it is. False when there
  // is none.
  bool set_variable(std::string_view name, std::string_view shell_text);
  // The same for an array in one line, which gets more words at its end.
  bool extend_array(std::string_view name, std::span<const std::string> words);
  std::string text() const;

 private:
  std::vector<std::string> lines_;
};

// As one word of a shell, quoted where it has to be.
std::string shell_word(std::string_view text);
// "(a 'b c')"
std::string shell_array(std::span<const std::string> words);

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
