#include "bench/compare/map_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/base/errors.h"
#include "models/base/replacing_file.h"

namespace syncopate::bench {
namespace {

namespace fs = std::filesystem;

// Returns map.json of the folder; an empty object if it is missing or damaged.
nlohmann::ordered_json map_in(const fs::path& dir) {
  std::ifstream in(dir / kMapFile, std::ios::binary);
  const auto found = nlohmann::ordered_json::parse(in, nullptr, false);
  return found.is_object() ? found : nlohmann::ordered_json::object();
}

void write_map(const fs::path& dir, const nlohmann::ordered_json& object) {
  replace_file(dir / kMapFile,
               object.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::string step_text(const StepTime& step) {
  return fmt::format("{} ms{}", step.milliseconds, step.is_measured ? ", measured" : "");
}

// Returns what keeps a map of these clusters out of the folder, in words; "" for nothing.
std::string conflict_of_map(const fs::path& dir, const std::vector<std::string>& names,
                            const StepTime& step_time) {
  if (!has_map(dir)) {
    return fs::exists(dir / "comparison.json") ? "has a comparison on one cluster" : "";
  }
  for (const std::string& name : clusters_in(dir)) {
    if (std::ranges::find(names, name) != names.end()) continue;
    return fmt::format("has a map with the cluster {}, which this command leaves out", name);
  }
  const std::optional<StepTime> found = step_time_in(dir);
  if (found && found->milliseconds != step_time.milliseconds) {
    return fmt::format("has a map with the step time {}, not {}", step_text(*found),
                       step_text(step_time));
  }
  return "";
}

}  // namespace

bool has_map(const fs::path& dir) { return fs::exists(dir / kMapFile); }

std::vector<std::string> clusters_in(const fs::path& dir) {
  const nlohmann::ordered_json object = map_in(dir);
  std::vector<std::string> names;
  if (object.contains("clusters") && object.at("clusters").is_array()) {
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

std::optional<StepTime> step_time_in(const fs::path& dir) {
  const nlohmann::ordered_json object = map_in(dir);
  const auto step = object.find("step_time");
  if (step == object.end() || !step->is_object()) return std::nullopt;
  const auto milliseconds = step->find("milliseconds");
  if (milliseconds == step->end() || !milliseconds->is_number()) return std::nullopt;
  return StepTime{.milliseconds = milliseconds->get<double>(),
                  .is_measured = step->contains("source") && step->at("source") == "measured"};
}

void keep_answer(const fs::path& dir, const std::string& sentence) {
  nlohmann::ordered_json object = map_in(dir);
  object["answer"] = {{"sentence", sentence}};
  write_map(dir, object);
}

MapFile::MapFile(fs::path dir, const std::vector<PlannedFolder>& planned, const StepTime& step_time,
                 bool replace, const std::string& shared_command)
    : dir_(std::move(dir)), step_time_(step_time), lock_(lock_report(dir_, dir_, shared_command)) {
  for (const PlannedFolder& folder : planned) names_.push_back(folder.name);
  make_room(dir_, conflict_of_map(dir_, names_, step_time), replace);
}

void MapFile::write(const std::string& command) const {
  const nlohmann::ordered_json object = {
      {"command", command},
      {"clusters", names_},
      {"step_time",
       {{"milliseconds", step_time_.milliseconds},
        {"source", step_time_.is_measured ? "measured" : "given"}}}};
  write_map(dir_, object);
}

}  // namespace syncopate::bench
