// The folder of a map of strategies, which compares the same variants on several clusters.
// DIR/CLUSTER is the folder of the comparison on one cluster. DIR/map.json has the names of the
// clusters, in order, their step time, and the answer of the report.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/compare/compare_options.h"
#include "bench/compare/comparison_file.h"
#include "worker/checkpoint/folder_lock.h"

namespace syncopate::bench {

inline constexpr const char* kMapFile = "map.json";

bool has_map(const std::filesystem::path& dir);
// Returns the names of the clusters of the map in the folder. Throws FileError.
std::vector<std::string> clusters_in(const std::filesystem::path& dir);

// Returns the step time (--step-time) with which the map in the folder was made; nullopt if there
// is no map, or if map.json has no step time.
std::optional<StepTime> step_time_in(const std::filesystem::path& dir);

// Writes the answer of the report into map.json. Throws FileError.
void keep_answer(const std::filesystem::path& dir, const std::string& sentence);

class MapFile {
 public:
  // Makes the folder of the map and locks it for the lifetime of this object. planned: the planned
  // runs of each cluster. Throws FileError. Throws UsageError if another process has locked the
  // folder. If the folder has another comparison, other clusters or another step time, removes the
  // old files if `replace`; otherwise throws UsageError. shared_command: see CompareOptions.
  MapFile(std::filesystem::path dir, const std::vector<PlannedFolder>& planned,
          const StepTime& step_time, bool replace, const std::string& shared_command = "");

  // Writes map.json. Throws FileError.
  void write(const std::string& command) const;

 private:
  std::filesystem::path dir_;
  std::vector<std::string> names_;
  StepTime step_time_;
  FolderLock lock_;
};

}  // namespace syncopate::bench
