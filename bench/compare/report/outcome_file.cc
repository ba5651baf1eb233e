#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "bench/compare/report/comparison_report.h"
#include "bench/compare/report/facts.h"
#include "bench/compare/report/outcome_words.h"
#include "models/base/errors.h"
#include "models/base/replacing_file.h"

namespace syncopate::bench {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
template <typename Number>
Json number(const std::optional<Number>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json answer_json(const Outcome& outcome) {
  const Answer& answer = outcome.answer;
  Json winners = Json::array();
  for (const std::size_t row : answer.winners) winners.push_back(outcome.rows[row].name);
  return {{"form", name_of(answer.form)},
          {"sentence", verdict_sentence(outcome)},
          {"best", answer.has_winners() ? winners.front() : Json(nullptr)},
          {"winners", winners},
          {"next", answer.next ? Json(outcome.rows[*answer.next].name) : Json(nullptr)},
          {"next_ratio", answer.next ? Json(answer.next_ratio.value) : Json(nullptr)},
          {"low", answer.next ? number(answer.next_ratio.low) : Json(nullptr)},
          {"high", answer.next ? number(answer.next_ratio.high) : Json(nullptr)},
          {"seeds", answer.seeds},
          {"seeds_needed", number(answer.seeds_needed)}};
}

Json rows_json(const Outcome& outcome) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < outcome.rows.size(); ++i) {
    const VariantSummary& row = outcome.rows[i];
    const RowOutcome& cell = outcome.cells[i];
    rows.push_back(
        {{"name", row.name},
         {"seconds_to_target", cell.ratio > 0.0 ? Json(cell.seconds) : Json(nullptr)},
         {"times_the_best", cell.ratio > 0.0 ? Json(cell.ratio) : Json(nullptr)},
         {"samples_to_target", row.samples_to_target ? Json(row.samples_to_target->mean) : nullptr},
         {"runs_to_target", row.reached},
         {"accuracy", row.accuracy ? number(row.accuracy->mean) : Json(nullptr)},
         {"better_rate", number(row.better_rate)},
         {"still_learning", row.is_still_learning},
         {"same_as", row.same_as ? Json(outcome.rows[*row.same_as].name) : Json(nullptr)},
         {"dropped_gradients", number(row.dropped_gradients)}});
  }
  return rows;
}

Json tests_json(const Outcome& outcome) {
  Json pairs = Json::array();
  for (const PairDifference& pair : outcome.claims.all()) {
    const Interval interval = pair.interval();
    pairs.push_back({{"measure", pair.measure == Measure::kTime ? "log_time" : "accuracy"},
                     {"a", outcome.rows[pair.a].name},
                     {"b", outcome.rows[pair.b].name},
                     {"difference", pair.value},
                     {"low", number(interval.low)},
                     {"high", number(interval.high)},
                     {"level", pair.level},
                     {"adjusted_p", pair.adjusted_p},
                     {"detectable", number(pair.detectable_with(pair.seeds))},
                     {"claimed", pair.is_claimed()}});
  }
  for (const CensoredPair& pair : outcome.claims.all_censored()) {
    pairs.push_back({{"measure", "log_rank"},
                     {"a", outcome.rows[pair.a].name},
                     {"b", outcome.rows[pair.b].name},
                     {"excess", pair.test.excess},
                     {"p", pair.test.p_value},
                     {"level", pair.level},
                     {"seeds_needed", number(pair.seeds_needed)},
                     {"claimed", pair.is_claimed()}});
  }
  return {{"family_level", kFamilyLevel}, {"pairs", pairs}};
}

}  // namespace

void keep_outcome(const std::filesystem::path& dir, const Outcome& outcome) {
  const std::filesystem::path file = dir / "comparison.json";
  std::ifstream in(file, std::ios::binary);
  Json object = Json::parse(in, nullptr, false);
  if (!object.is_object()) {
    throw FileError(
        fmt::format("{}: expected a JSON object that describes a comparison", file.string()));
  }
  const Comparison& comparison = outcome.comparison;
  if (const auto& derived = comparison.derived_target) {
    object["derived_target"] = {{"accuracy", *comparison.target_accuracy},
                                {"share", kTargetShare},
                                {"baseline", derived->baseline},
                                {"best_accuracy", derived->best_accuracy}};
  }
  Json facts = Json::array();
  for (const Fact& fact : facts_of(outcome)) {
    facts.push_back(
        {{"subject", fact.subject}, {"text", fact.text}, {"is_warning", fact.is_warning}});
  }
  object["answer"] = answer_json(outcome);
  object["rows"] = rows_json(outcome);
  object["claims"] = tests_json(outcome);
  object["facts"] = facts;
  for (const char* earlier : {"fastest_with_one_worker", "recommended", "verdict", "warnings"}) {
    object.erase(earlier);
  }
  replace_file(file, object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace syncopate::bench
