#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "bench/compare/report/answer.h"
#include "bench/compare/report/verdict.h"
#include "bench/plots/document.h"
#include "models/base/errors.h"

namespace syncopate::bench {

void keep_verdict(const std::filesystem::path& dir, const Comparison& comparison,
                  const Verdict& verdict) {
  using Json = nlohmann::ordered_json;
  const std::filesystem::path file = dir / "comparison.json";
  std::ifstream in(file, std::ios::binary);
  Json object = Json::parse(in, nullptr, false);
  if (!object.is_object()) {
    throw FileError(
        fmt::format("{}: expected a JSON object that describes a comparison", file.string()));
  }
  const Rows rows = summarise(comparison);
  Json pairs = Json::array();
  const auto number = [](double value) {
    return std::isfinite(value) ? Json(value) : Json(nullptr);
  };
  const Claims claims(rows);
  for (const PairDifference& pair : claims.all()) {
    pairs.push_back({{"measure", pair.measure == Measure::kTime ? "log_time" : "accuracy"},
                     {"a", rows[pair.a].name},
                     {"b", rows[pair.b].name},
                     {"difference", pair.value},
                     {"low", number(pair.interval.low)},
                     {"high", number(pair.interval.high)},
                     {"level", pair.level},
                     {"adjusted_p", pair.adjusted_p},
                     {"detectable", number(pair.detectable)},
                     {"evaluation_share", pair.evaluation_share},
                     {"claimed", pair.is_claimed()}});
  }
  Json warned = Json::array();
  for (const Warning& warning : verdict.warnings) {
    warned.push_back({{"subject", warning.subject}, {"text", warning.text}});
  }
  Json summaries = Json::array();
  const auto optional_number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  const auto one_worker = fastest_with_one_worker(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& samples = rows[i].samples_to_target;
    const auto over = [&](std::size_t base) { return optional_number(speed_up(rows, base, i)); };
    summaries.push_back(
        {{"name", rows[i].name},
         {"samples_to_target", samples ? Json(samples->mean) : Json(nullptr)},
         {"runs_to_target", rows[i].reached},
         {"speed_up", over(0)},
         {"speed_up_over_one_worker", one_worker ? over(*one_worker) : Json(nullptr)},
         {"dropped_gradients", optional_number(rows[i].dropped_gradients)}});
  }
  if (const auto& derived = comparison.derived_target) {
    object["derived_target"] = {{"accuracy", *comparison.target_accuracy},
                                {"share", kTargetShare},
                                {"baseline", derived->baseline},
                                {"best_accuracy", derived->best_accuracy}};
  }
  const Answer answer = answer_of(comparison, rows, claims);
  Json winners = Json::array();
  for (const std::size_t row : answer.winners) winners.push_back(rows[row].name);
  object["answer"] = {{"form", name_of(answer.form)},
                      {"winners", winners},
                      {"next", answer.next ? Json(rows[*answer.next].name) : Json(nullptr)},
                      {"next_ratio", number(answer.next_ratio.value)},
                      {"low", number(answer.next_ratio.low)},
                      {"high", number(answer.next_ratio.high)},
                      {"seeds", answer.seeds}};
  object["rows"] = summaries;
  object["fastest_with_one_worker"] = one_worker ? Json(rows[*one_worker].name) : Json(nullptr);
  object["recommended"] = verdict.recommended;
  object["verdict"] = verdict.sentences;
  object["warnings"] = warned;
  object["claims"] = {{"family_level", kFamilyLevel}, {"pairs", pairs}};
  write_whole(file, object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace syncopate::bench
