// Provides the job scripts of this folder, and fills in values as a user would with an editor. The
// scripts are embedded in the program, so that the program's file is all that a cluster needs.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace syncopate {

struct JobScriptRow {
  std::string_view name;  // the name without its suffix, such as "multi_node" for multi_node.sbatch
  std::string_view text;
};
std::span<const JobScriptRow> job_scripts();

class JobScript {
 public:
  explicit JobScript(std::string_view text);

  // Returns the number of components of a heterogeneous job script; 1 for an ordinary script.
  int components() const;
  // Sets the line "#SBATCH --name=value" in the given component of a script, counted from 0. A line
  // that is commented out with ## becomes active. Returns false if the component has no such line.
  bool set_option(int component, std::string_view name, std::string_view value);
  // Returns the number that the line "#SBATCH --name=number" of a component gives; 1 if the
  // component has no such line, or if the line is commented out.
  int number_of(int component, std::string_view name) const;
  // Like set_option(), but adds a line after the other options of the component if it has no such
  // line. value: "" for an option without a value.
  void add_option(int component, std::string_view name, std::string_view value);
  // Replaces the line "#SBATCH --name", an option without a value, by "#SBATCH --other". Returns
  // false if there is no such line.
  bool rename_option(std::string_view name, std::string_view other);
  // Changes the script's comments after values have been filled in. Replaces the request at the
  // head to edit the script, and removes the EDIT marks at the places to edit.
  void drop_edit_marks();
  // Replaces the line that begins with "name=" by "name=" followed by `shell_text`, which is not
  // quoted. Returns false if there is no such line.
  bool set_variable(std::string_view name, std::string_view shell_text);
  // Appends words to an array that the script defines in one line. Returns false if the script has
  // no such line.
  bool extend_array(std::string_view name, std::span<const std::string> words);
  std::string text() const;

 private:
  std::vector<std::string> lines_;
};

// Returns the text as one word for the shell, quoted where necessary.
std::string shell_word(std::string_view text);
// Returns the words as a shell array such as "(a 'b c')".
std::string shell_array(std::span<const std::string> words);

// The values to fill into a job script. 0 or empty means that the value in the script is kept.
struct SbatchOptions {
  std::string script;    // name of the script, see JobScriptRow::name
  std::string strategy;  // empty: the script chooses the strategy
  int nodes = 0;         // the number of nodes of the workers
  int tasks_per_node = 0;
  int cpus_per_task = 0;
  int servers = 0;
  int server_nodes = 1;
  std::string array;     // seeds of an array job in the form of sbatch --array; empty: a single job
  bool requeues = true;  // whether the job returns to the queue at its time limit
  // The number of GPUs of a task, which decides its number of CPUs; 0 if a flag gives the number of
  // CPUs.
  int gpus_per_task = 0;
  std::string time;
  std::string partition;
  std::string server_partition;
  std::string account;
  std::string job_name;
  // Options of sbatch as pairs of name and value. `resources` are for the component that trains,
  // `other_options` for all components.
  std::vector<std::pair<std::string, std::string>> resources;
  std::vector<std::pair<std::string, std::string>> other_options;
  std::string container;
  std::string container_flags;  // The flags of `apptainer exec`, separated by blanks.
  std::string program;
  std::string bench_program;
  std::vector<std::string> train_flags;
  std::string data;  // the data set that the flags of train name
  bool uses_mpirun = false;
  bool print = false;
  std::vector<std::string> notes;  // lines for the user, for standard error
};

// Returns the number of nodes of the workers that the options give; if they give none, the number
// in the script.
int nodes_of(const SbatchOptions& options);
// Returns the number of tasks on each node of the workers; 1 if the options give no number.
int tasks_on_node(const SbatchOptions& options);

// Returns the job script with the values filled in. Throws InternalError if the script does not
// have a line that must be filled in.
std::string filled_script(const SbatchOptions& options);

}  // namespace syncopate
