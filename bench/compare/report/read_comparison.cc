#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/compare/report/comparison.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Words; what else stands there is shown as it stands.
std::string words(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

std::optional<bool> flag(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::nullopt : std::optional(found->get<bool>());
}

Machine read_machine(const json& object) {
  return {.host = words(object, "host"),
          .processor = words(object, "processor"),
          .cpus = object.at("cpus").get<int>(),
          .gpus = object.value("gpus", std::vector<std::string>{}),
          .version = words(object, "version"),
          .date = words(object, "date")};
}

Chance read_chance(const json& object) {
  return {.share = object.at("share").get<double>(),
          .classes = object.at("classes").get<int>(),
          .test_samples = object.at("test_samples").get<std::int64_t>()};
}

ComparedRun read_compared_run(const fs::path& dir, const std::string& name) {
  ComparedRun run{.file = name, .result = std::nullopt};
  for (const fs::path& file : {dir / name, dir / "runs" / name}) {
    if (!fs::is_regular_file(file)) continue;
    run.result = read_run(file);
    break;
  }
  return run;
}

ComparedVariant read_variant(const fs::path& dir, const json& object) {
  ComparedVariant variant{.label = object.at("label").get<std::string>(),
                          .workers = object.at("workers").get<int>(),
                          .runs = {}};
  variant.keeps_step = flag(object, "keeps_step");
  variant.is_distributed = flag(object, "distributed");
  for (const json& name : object.at("runs")) {
    variant.runs.push_back(read_compared_run(dir, name.get<std::string>()));
  }
  return variant;
}

Comparison comparison_of(const fs::path& dir, const json& object) {
  Comparison comparison;
  comparison.command = words(object, "command");
  comparison.budget = words(object, "budget");
  comparison.trouble = words(object, "trouble");
  const auto target = object.find("target_accuracy");
  if (target != object.end() && !target->is_null()) {
    comparison.target_accuracy = target->get<double>();
  }
  const std::string clock = object.at("clock").get<std::string>();
  if (clock != "real" && clock != "virtual") {
    throw FileError((dir / "comparison.json").string() + ": \"clock\" is \"" + clock +
                    "\"; expected \"real\" or \"virtual\"");
  }
  comparison.has_virtual_clock = clock == "virtual";
  for (const json& machine : object.value("machines", json::array())) {
    comparison.machines.push_back(read_machine(machine));
  }
  comparison.threads_per_worker = object.value("threads_per_worker", 0);
  if (object.contains("chance")) comparison.chance = read_chance(object.at("chance"));
  for (const json& variant : object.at("variants")) {
    comparison.variants.push_back(read_variant(dir, variant));
  }
  return comparison;
}

}  // namespace

Comparison read_comparison(const fs::path& dir) {
  const fs::path file = dir / "comparison.json";
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw FileError(file.string() +
                    ": cannot be read; is this the folder that --report of compare named?");
  }
  try {
    return comparison_of(dir, json::parse(in));
  } catch (const json::exception& error) {
    throw FileError(file.string() + ": does not describe a comparison: " + error.what());
  }
}

}  // namespace syncopate::bench
