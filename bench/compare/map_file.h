// The folder of a map: DIR/CLUSTER is the folder of the comparison on one cluster, and DIR/map.json
// names the clusters in their order.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/compare/comparison_file.h"
#include "worker/checkpoint/folder_lock.h"

namespace syncopate::bench {

inline constexpr const char* kMapFile = "map.json";

bool has_map(const std::filesystem::path& dir);
// Returns the names of the clusters of the map in the folder. Throws FileError.
std::vector<std::string> clusters_in(const std::filesystem::path& dir);

class MapFile {
 public:
  // Makes the folder and locks it for the lifetime of this object. Throws FileError, and UsageError
  // if another process has locked it, or if the folder has another comparison or other clusters;
  // with `replace` these are removed instead.
  MapFile(std::filesystem::path dir, const std::vector<PlannedFolder>& planned, bool replace);

  // Writes map.json. Throws FileError.
  void write(const std::string& command) const;

 private:
  std::filesystem::path dir_;
  std::vector<std::string> names_;
  FolderLock lock_;
};

}  // namespace syncopate::bench
