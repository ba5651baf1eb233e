#include "bench/compare/report/reported_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>

#include "bench/compare/report/summary.h"
#include "bench/plots/text.h"
#include "models/base/errors.h"
#include "models/base/flag_values.h"

namespace syncopate::bench {
namespace {

// Describes one fault; returns nothing if a field is missing or the flag is unknown.
std::optional<std::string> describe_fault(const std::string& flag, const std::string& value) {
  if (flag == "--service-time") return "compute delay " + value;
  if (flag == "--link-delay") return "link delay " + value;
  if (flag == "--link-rate") return "link rate " + value;
  const Fields fields = parse_fields(value).value_or(Fields{});
  const auto has = [&](const char* name) { return fields.count(name) == 1; };
  if (!has("worker")) return std::nullopt;
  const std::string& worker = fields.at("worker");
  if (flag == "--slow" && has("factor")) {
    return fmt::format("worker {} slowed {}x", worker, fields.at("factor"));
  }
  if (!has("at")) return std::nullopt;
  if (flag == "--pause" && has("for")) {
    return fmt::format("worker {} paused for {} at {}", worker, fields.at("for"), fields.at("at"));
  }
  if (flag == "--join") return fmt::format("worker {} joining at {}", worker, fields.at("at"));
  if (flag != "--kill") return std::nullopt;
  const std::string killed = fmt::format("worker {} killed at {}", worker, fields.at("at"));
  return has("restart") ? fmt::format("{} and restarted {} later", killed, fields.at("restart"))
                        : killed;
}

// Returns when a fault happens, in seconds of training. Empty for faults that last the whole run.
std::optional<double> seconds_of_fault(const std::string& flag, const std::string& value) {
  if (flag != "--kill" && flag != "--pause" && flag != "--join") return std::nullopt;
  const auto fields = parse_fields(value);
  if (!fields || !fields->contains("at")) return std::nullopt;
  try {
    return parse_seconds(fields->at("at"), flag);
  } catch (const UsageError&) {  // a comparison.json that was not written by compare
    return std::nullopt;
  }
}

bool has_fault(const RunResult& run, const std::string& flag, const std::string& value) {
  for (std::size_t i = 0; i + 1 < run.faults.size(); i += 2) {
    if (run.faults[i] == flag && run.faults[i + 1] == value) return true;
  }
  return false;
}

}  // namespace

std::string describe_faults(const std::string& faults) {
  std::istringstream in(faults);
  std::vector<std::string> words;
  for (std::string flag, value; in >> flag;) {
    if (!(in >> value)) return faults;
    const auto text = describe_fault(flag, value);
    if (!text) return faults;
    words.push_back(*text);
  }
  return listed(words);
}

std::vector<LateFault> late_faults(const Comparison& comparison) {
  std::vector<LateFault> all;
  if (!comparison.target_accuracy) return all;
  std::istringstream words(comparison.faults);
  for (LateFault fault; words >> fault.flag >> fault.value;) {
    const auto at = seconds_of_fault(fault.flag, fault.value);
    if (!at) continue;
    fault.rows.clear();
    fault.is_for_all = true;
    for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
      bool was_in_time = false;
      bool is_late = false;
      for (const ComparedRun& run : comparison.variants[i].runs) {
        if (!run.is_done() || !has_fault(*run.result, fault.flag, fault.value)) continue;
        const auto reached = time_to_target(*run.result, *comparison.target_accuracy);
        (reached && reached->wall_seconds <= *at ? is_late : was_in_time) = true;
      }
      if (is_late && !was_in_time) fault.rows.push_back(i);
      fault.is_for_all &= !was_in_time;
    }
    if (!fault.rows.empty()) all.push_back(fault);
  }
  return all;
}

std::string effective_faults(const Comparison& comparison) {
  const std::vector<LateFault> late = late_faults(comparison);
  if (late.empty()) return comparison.faults;
  std::istringstream words(comparison.faults);
  std::string effective;
  for (std::string flag, value; words >> flag >> value;) {
    const bool is_late = std::ranges::any_of(late, [&](const LateFault& one) {
      return one.is_for_all && one.flag == flag && one.value == value;
    });
    if (!is_late) effective += fmt::format("{}{} {}", effective.empty() ? "" : " ", flag, value);
  }
  return effective;
}

}  // namespace syncopate::bench
