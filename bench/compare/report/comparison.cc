#include "bench/compare/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/compare/report/statistics.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// Returns a string field, "" if it is missing; a value of another type is returned as JSON text.
std::string string_field(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return "";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

template <typename Value>
std::optional<Value> optional_field(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? std::nullopt : std::optional(found->get<Value>());
}

Machine read_machine(const json& object) {
  return {.host = string_field(object, "host"),
          .processor = string_field(object, "processor"),
          .cpus = object.at("cpus").get<int>(),
          .cores = object.at("cores").get<int>(),
          .gpus = object.at("gpus").get<std::vector<std::string>>(),
          .version = string_field(object, "version"),
          .commit = string_field(object, "commit"),
          .instruction_set = string_field(object, "instruction_set"),
          .onednn = string_field(object, "onednn"),
          .date = string_field(object, "date")};
}

Chance read_chance(const json& object) {
  return {.share = object.at("share").get<double>(),
          .classes = object.at("classes").get<int>(),
          .test_samples = object.at("test_samples").get<std::int64_t>(),
          .validation_samples = object.at("validation_samples").get<std::int64_t>()};
}

PaperClaim read_claim(const json& object) {
  return {.source = string_field(object, "source"),
          .text = string_field(object, "text"),
          .better = string_field(object, "better"),
          .worse = string_field(object, "worse")};
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
                          .workers = object.at("workers").get<int>()};
  variant.is_synchronous = object.at("keeps_step").get<bool>();
  variant.is_distributed = object.at("distributed").get<bool>();
  variant.learning_rate_rule = string_field(object, "learning_rate_rule");
  variant.learning_rate = optional_field<double>(object, "learning_rate");
  variant.learning_rate_factor = optional_field<double>(object, "learning_rate_factor");
  variant.threads_per_worker = optional_field<int>(object, "threads_per_worker");
  variant.servers = object.value("servers", 0);
  // Older reports have the number of backup workers instead.
  variant.drops =
      object.value("drops", object.contains("backup_workers") ? "gradients that come last" : "");
  variant.update_flags = string_field(object, "update_flags");
  if (const auto rounds = object.find("rounds"); rounds != object.end()) {
    variant.steps_in_round = rounds->at("steps").get<std::int64_t>();
    variant.outer_step = rounds->at("outer_step").get<std::string>();
    variant.has_outer_optimizer = rounds->at("has_outer_optimizer").get<bool>();
    variant.outer_learning_rate = optional_field<double>(*rounds, "outer_learning_rate");
  }
  variant.momentum = object.value("momentum", 0.0);
  variant.batch_size = object.value("batch_size", std::int64_t{0});
  variant.tuning_of = string_field(object, "tuning_of");
  variant.stable_rate = optional_field<double>(object, "stable_rate");
  variant.is_at_border = object.value("at_border", false);
  for (const json& name : object.at("runs")) {
    variant.runs.push_back(read_compared_run(dir, name.get<std::string>()));
  }
  return variant;
}

// Returns the highest evaluation of each run that has ended; a diverged run may have none.
std::vector<double> best_accuracies(const ComparedVariant& variant) {
  std::vector<double> best;
  for (const RunResult* const run : variant.results()) {
    double highest = -1.0;
    for (const CurvePoint& point : run->curve) highest = std::fmax(highest, point.accuracy);
    if (highest >= 0.0) best.push_back(highest);
  }
  return best;
}

// Derives the target from the baseline, rounded down to a tenth of a point. With one worker, every
// strategy without an outer optimizer trains as one device does, so the first such row with a
// result is the baseline.
void derive_target(Comparison& comparison) {
  const ComparedVariant* baseline = nullptr;
  const auto is_like_one_device = [](const ComparedVariant& variant) {
    return variant.workers == 1 && !variant.has_outer_optimizer;
  };
  for (const ComparedVariant& variant : comparison.variants) {
    if (best_accuracies(variant).empty()) continue;
    if (baseline == nullptr || (!is_like_one_device(*baseline) && is_like_one_device(variant))) {
      baseline = &variant;
    }
  }
  if (baseline == nullptr) return;
  const std::vector<double> best = best_accuracies(*baseline);
  const double median = lower_median(best);
  comparison.derived_target = {.baseline = baseline->label, .best_accuracy = median};
  comparison.target_accuracy = std::floor(1000.0 * kTargetShare * median + 1e-9) / 1000.0;
}

Comparison comparison_of(const fs::path& dir, const json& object) {
  Comparison comparison;
  comparison.command = string_field(object, "command");
  comparison.model = string_field(object, "model");
  comparison.data_hash = string_field(object, "data_hash");
  comparison.network_hash = string_field(object, "network_hash");
  comparison.network_layers = string_field(object, "network_layers");
  comparison.train_samples = object.value("train_samples", std::int64_t{0});
  comparison.data = string_field(object, "data");
  comparison.budget = string_field(object, "budget");
  comparison.batch = string_field(object, "batch");
  comparison.faults = string_field(object, "trouble");
  const auto target = object.find("target_accuracy");
  if (target != object.end() && !target->is_null()) {
    comparison.target_accuracy = target->get<double>();
  }
  const std::string clock = object.at("clock").get<std::string>();
  if (clock != "real" && clock != "virtual") {
    throw FileError(
        fmt::format("{}: expected \"clock\" to be \"real\" or \"virtual\", found \"{}\"",
                    (dir / "comparison.json").string(), clock));
  }
  comparison.has_virtual_clock = clock == "virtual";
  for (const json& machine : object.value("machines", json::array())) {
    comparison.machines.push_back(read_machine(machine));
  }
  comparison.threads_per_worker = object.value("threads_per_worker", 0);
  comparison.learning_rate_rule = string_field(object, "learning_rate_rule");
  if (object.contains("chance")) comparison.chance = read_chance(object.at("chance"));
  for (const json& claim : object.value("papers", json::array())) {
    comparison.claims.push_back(read_claim(claim));
  }
  // Older reports have one claim.
  if (object.contains("claim")) comparison.claims.push_back(read_claim(object.at("claim")));
  for (const json& variant : object.at("variants")) {
    comparison.variants.push_back(read_variant(dir, variant));
  }
  if (comparison.variants.empty()) {
    throw FileError(fmt::format("{}: has no variants; remove it, and report makes it again",
                                (dir / "comparison.json").string()));
  }
  if (target != object.end() && target->is_null()) derive_target(comparison);
  return comparison;
}

}  // namespace

std::vector<const RunResult*> ComparedVariant::results() const {
  std::vector<const RunResult*> done;
  for (const ComparedRun& run : runs) {
    if (run.is_done()) done.push_back(&*run.result);
  }
  return done;
}

Comparison read_comparison(const fs::path& dir) {
  const fs::path file = dir / "comparison.json";
  std::ifstream in(file, std::ios::binary);
  if (!in && fs::exists(dir / kTuningFolder)) {
    throw FileError(
        fmt::format("{}: the search of --tune has not ended; the same command of "
                    "compare continues it",
                    dir.string()));
  }
  if (!in) {
    throw FileError(fmt::format(
        "{}: cannot be read; give the folder that --report of compare has written", file.string()));
  }
  try {
    Comparison comparison = comparison_of(dir, json::parse(in));
    const bool is_tuned = std::ranges::any_of(
        comparison.variants, [](const auto& one) { return one.learning_rate_rule == "tuned"; });
    for (int round = 1; is_tuned && fs::exists(round_folder(dir, round) / "comparison.json");
         ++round) {
      comparison.tuning.push_back(read_comparison(round_folder(dir, round)));
    }
    return comparison;
  } catch (const json::exception& error) {
    throw FileError(
        fmt::format("{}: does not describe a comparison: {}; remove it, and report makes it again",
                    file.string(), error.what()));
  }
}

std::vector<Comparison> read_map(const fs::path& dir, const std::vector<std::string>& clusters) {
  std::vector<Comparison> comparisons;
  for (const std::string& cluster : clusters) {
    Comparison& comparison = comparisons.emplace_back(read_comparison(dir / cluster));
    if (!comparison.derived_target) continue;
    comparison.derived_target = comparisons.front().derived_target;
    comparison.target_accuracy = comparisons.front().target_accuracy;
  }
  return comparisons;
}

fs::path round_folder(const fs::path& dir, int round) {
  return dir / kTuningFolder / std::to_string(round);
}

bool is_untuned(std::string_view learning_rate_rule) {
  constexpr std::array<std::string_view, 4> kChosen = {"", "given", "tuned", "preset"};
  return std::ranges::find(kChosen, learning_rate_rule) == kChosen.end();
}

std::string target_text(const Comparison& comparison) {
  return comparison.target_accuracy ? percent_text(*comparison.target_accuracy) : "the target";
}

double Chance::limit() const noexcept {
  constexpr double kStandardErrors = 3.0;
  const auto samples = static_cast<double>(test_samples);
  return std::min(1.0, share + kStandardErrors * std::sqrt(share * (1.0 - share) / samples));
}

}  // namespace syncopate::bench
