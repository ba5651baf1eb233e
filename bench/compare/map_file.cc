#include "bench/compare/map_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/plots/document.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

fs::path made_folder(const fs::path& dir) {
  std::error_code error;
  fs::create_directories(dir, error);
  if (!error) return dir;
  throw FileError(fmt::format("--report {}: cannot make the folder: {}; choose another one",
                              dir.string(), error.message()));
}

// Returns what keeps a map of these clusters out of the folder, in words; "" for nothing.
std::string conflict_of_map(const fs::path& dir, const std::vector<std::string>& names) {
  if (!has_map(dir)) {
    return fs::exists(dir / "comparison.json") ? "has a comparison on one cluster" : "";
  }
  for (const std::string& name : clusters_in(dir)) {
    if (std::ranges::find(names, name) != names.end()) continue;
    return fmt::format("has a map with the cluster {}, which this command leaves out", name);
  }
  return "";
}

}  // namespace

bool has_map(const fs::path& dir) { return fs::exists(dir / kMapFile); }

std::vector<std::string> clusters_in(const fs::path& dir) {
  std::ifstream in(dir / kMapFile, std::ios::binary);
  const auto object = nlohmann::json::parse(in, nullptr, false);
  std::vector<std::string> names;
  if (object.is_object() && object.contains("clusters") && object.at("clusters").is_array()) {
    for (const auto& name : object.at("clusters")) {
      if (name.is_string()) names.push_back(name.get<std::string>());
    }
  }
  const auto is_path = [](const std::string& name) { return name.find('/') != std::string::npos; };
  if (!names.empty() && std::ranges::none_of(names, is_path)) return names;
  throw FileError(
      fmt::format("{}: expected the names of clusters; remove the file, or repeat the "
                  "comparison in another folder",
                  (dir / kMapFile).string()));
}

MapFile::MapFile(fs::path dir, const std::vector<PlannedFolder>& planned, bool replace)
    : dir_(std::move(dir)),
      lock_(made_folder(dir_), FolderLockOptions{.flag = "--report", .user = "comparison"}) {
  for (const PlannedFolder& folder : planned) names_.push_back(folder.name);
  const std::string conflict = conflict_of_map(dir_, names_);
  if (conflict.empty()) return;
  if (!replace) {
    throw UsageError(fmt::format(
        "--report {} {}; choose another folder, or add --replace to remove that comparison",
        dir_.string(), conflict));
  }
  remove_comparison(dir_);
}

void MapFile::write(const std::string& command) const {
  const nlohmann::ordered_json object = {{"command", command}, {"clusters", names_}};
  write_whole(dir_ / kMapFile,
              object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace syncopate::bench
