// The description of a comparison in its folder. The first line of each run's file has the
// conditions of the run and of its comparison; DIR/comparison.json is made from these lines, and is
// made again from them when it is lost. A folder has one comparison, which may gain runs.
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

namespace syncopate::bench {

// The parts of comparison.json that the options do not have.
struct ComparisonFacts {
  std::string command;  // command line of the comparison
  Machine machine;      // machine of this process
  std::optional<Chance> chance{};
};

// The first line of a run's file.
struct RunHead {
  std::string file;  // name in DIR/runs, such as "mirrored-seed1.jsonl"
  std::string line;  // a JSON object
};

// Returns in words why the comparison `planned` cannot use the folder. Either the runs in the
// folder have another model, data set, target accuracy, budget, clock, fault injection or flag, or
// `planned` leaves some of them out. In a folder without runs, comparison.json is compared. "" if
// the folder has neither, or if `planned` continues its comparison.
std::string conflict_in(const std::filesystem::path& dir, const std::vector<RunHead>& planned);

// The runs that are planned for a folder.
struct PlannedFolder {
  std::string name;  // the cluster, a folder inside the map's; "" for the report's folder
  std::vector<RunHead> runs;
};

// Returns the first of the folders BASE, BASE-2, BASE-3, ... that is new or has the comparisons
// `planned` with missing or failed runs. The plan may depend on the folder.
std::filesystem::path numbered_folder(const std::filesystem::path& base,
                                      const std::vector<PlannedFolder>& planned);
std::filesystem::path numbered_folder(
    const std::filesystem::path& base,
    const std::function<std::vector<PlannedFolder>(const std::filesystem::path&)>& planned);

// Removes the files of the comparison or of the map in the folder: runs, descriptions and pages.
void remove_comparison(const std::filesystem::path& dir);

// Writes DIR/comparison.json for the planned runs. Throws FileError.
void write_comparison_file(const std::filesystem::path& dir, const std::vector<RunHead>& planned,
                           const ComparisonFacts& facts);

// Makes comparison.json from the files of the runs if it is missing, and prints what they do not
// say. Prints the names of runs that an existing comparison.json leaves out. Throws FileError if
// the runs are of several comparisons.
void restore_comparison_file(const std::filesystem::path& dir, std::ostream& out);

// Returns the description of a machine, as comparison.json and the files of real runs have it.
nlohmann::ordered_json machine_json(const Machine& machine);

}  // namespace syncopate::bench
