// The description of a comparison in its folder. The first line of each run's file describes the
// run and its comparison. DIR/comparison.json is made from these lines, so a lost comparison.json
// can be restored. A folder has one comparison, to which runs may be added.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/compare_options.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/variant.h"
#include "worker/checkpoint/folder_lock.h"

namespace syncopate::bench {

// The contents of comparison.json that do not follow from the options of the comparison.
struct ComparisonFacts {
  std::string command;     // command line of the comparison
  Machine machine;         // machine of this process
  bool is_shared = false;  // whether other processes of the command may have named their machines
};

// The first line of a run's file.
struct RunHead {
  std::string file;  // name in DIR/runs, such as "mirrored-seed1.jsonl"
  std::string line;  // a JSON object
};

// Returns a text that says why the comparison with the runs `planned` cannot use the folder; "" if
// it can use the folder. A conflict is a run in the folder with another model, data set, target
// accuracy, budget, clock, fault injection or flag, or a run that is not one of `planned`. If the
// folder has no runs, comparison.json is checked in place of the runs.
std::string conflict_in(const std::filesystem::path& dir, const std::vector<RunHead>& planned);

// Throws std::runtime_error that says how the runs in the folder differ from the planned ones;
// there may be more planned runs. comparison.json and the runs of an unchanged comparison differ in
// nothing from the plan that its command makes.
void require_planned(const std::filesystem::path& dir, const std::vector<RunHead>& planned);

// The runs that are planned for the folder of one comparison.
struct PlannedFolder {
  std::string name;  // in a map: the cluster, which names a folder; otherwise ""
  std::vector<RunHead> runs;
  // Whether this is a round of --tune. Its failed runs are results, so they are not repeated. A
  // folder after a round may be missing, because it is made when the round has ended.
  bool is_round = false;
};

// Returns the first of the folders BASE, BASE-2, BASE-3, ... that is new, or in which runs of the
// comparisons `planned` are missing or failed. The second overload calls the function `planned`
// with each folder, because the planned runs may depend on the folder.
std::filesystem::path numbered_folder(const std::filesystem::path& base,
                                      const std::vector<PlannedFolder>& planned);
std::filesystem::path numbered_folder(
    const std::filesystem::path& base,
    const std::function<std::vector<PlannedFolder>(const std::filesystem::path&)>& planned);

// Removes the files of the comparison, or of the map of several clusters, in the folder: runs,
// descriptions and pages. conflict: the reason why these files are in the way; does nothing if it
// is empty. Throws UsageError with this reason if `replace` is false.
void make_room(const std::filesystem::path& dir, const std::string& conflict, bool replace);

// Makes `folder`, which is the folder `dir` of --report or inside of it. Throws FileError.
void make_report_folder(const std::filesystem::path& dir, const std::filesystem::path& folder);
// Calls make_report_folder() and locks `dir`. Processes with the same
// CompareOptions::shared_command share the lock, unless it is "". Throws FileError, and UsageError
// if another process has locked `dir`.
FolderLock lock_report(const std::filesystem::path& dir, const std::filesystem::path& folder,
                       const std::string& shared_command);

// Returns whether the file has a run that ended without a failure. Throws what read_run() throws.
bool is_run_done(const std::filesystem::path& file);

// Writes DIR/comparison.json for the planned runs. Names this machine if it will train runs. Throws
// FileError.
void write_comparison_file(const std::filesystem::path& dir, const std::vector<RunHead>& planned,
                           const ComparisonFacts& facts);

// If comparison.json is missing, makes it from the files of the runs, and prints which information
// these files lack. If comparison.json exists, prints the number of runs in the folder that
// comparison.json does not name. Throws FileError if the runs belong to different comparisons.
void restore_comparison_file(const std::filesystem::path& dir, std::ostream& out);

// Returns the JSON description of a machine for comparison.json and the files of real runs.
nlohmann::ordered_json machine_json(const Machine& machine);

}  // namespace syncopate::bench
