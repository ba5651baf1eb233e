#include "bench/compare/report/late_trouble.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "models/base/errors.h"
#include "models/base/flag_values.h"

namespace syncopate::bench {
namespace {

// When it came, in seconds since training began. Nothing for trouble that was there all the time.
std::optional<double> time_of(const std::string& flag, const std::string& value) {
  if (flag != "--kill" && flag != "--pause" && flag != "--join") return std::nullopt;
  const auto fields = parse_fields(value);
  if (!fields || !fields->contains("at")) return std::nullopt;
  try {
    return parse_seconds(fields->at("at"), flag);
  } catch (const UsageError&) {  // of a file that somebody else has written
    return std::nullopt;
  }
}

bool has(const RunResult& run, const std::string& flag, const std::string& value) {
  for (std::size_t i = 0; i + 1 < run.trouble.size(); i += 2) {
    if (run.trouble[i] == flag && run.trouble[i + 1] == value) return true;
  }
  return false;
}

}  // namespace

std::vector<LateTrouble> late_trouble(const Comparison& comparison) {
  std::vector<LateTrouble> all;
  if (!comparison.target_accuracy) return all;
  std::istringstream words(comparison.trouble);
  for (LateTrouble trouble; words >> trouble.flag >> trouble.value;) {
    const auto at = time_of(trouble.flag, trouble.value);
    if (!at) continue;
    trouble.rows.clear();
    trouble.is_for_all = true;
    for (std::size_t i = 0; i < comparison.variants.size(); ++i) {
      bool befell = false;  // somebody in time
      bool is_late = false;
      for (const ComparedRun& run : comparison.variants[i].runs) {
        if (!run.is_done() || !has(*run.result, trouble.flag, trouble.value)) continue;
        const auto reached = time_to_target(*run.result, *comparison.target_accuracy);
        (reached && reached->wall_seconds <= *at ? is_late : befell) = true;
      }
      if (is_late && !befell) trouble.rows.push_back(i);
      trouble.is_for_all &= !befell;
    }
    if (!trouble.rows.empty()) all.push_back(trouble);
  }
  return all;
}

std::string felt_trouble(const Comparison& comparison) {
  const std::vector<LateTrouble> late = late_trouble(comparison);
  if (late.empty()) return comparison.trouble;
  std::istringstream words(comparison.trouble);
  std::string felt;
  for (std::string flag, value; words >> flag >> value;) {
    const bool is_late = std::ranges::any_of(late, [&](const LateTrouble& one) {
      return one.is_for_all && one.flag == flag && one.value == value;
    });
    if (!is_late) felt += (felt.empty() ? "" : " ") + flag + " " + value;
  }
  return felt;
}

}  // namespace syncopate::bench
