#include "bench/compare/report/verdict.h"

#include <utility>

#include "bench/compare/report/findings.h"
#include "bench/compare/report/machine.h"
#include "bench/compare/report/recommendation.h"
#include "bench/compare/report/remarks.h"
#include "bench/compare/report/synchronous_or_asynchronous.h"

namespace syncopate::bench {

Verdict verdict(const Comparison& comparison) {
  const Rows rows = summarise(comparison);
  const Rows pool = choices(rows, comparison.chance);
  Verdict verdict{.answer = {}, .remarks = remarks(comparison, rows)};
  const auto add = [&](const std::optional<std::string>& sentence) {
    if (sentence) verdict.answer.push_back(*sentence + ".");
  };
  const Recommendation recommendation = recommend(comparison, rows, pool);
  if (recommendation.row != nullptr) verdict.recommended = recommendation.row->label;
  add(recommendation.sentence);
  add(synchronous_or_asynchronous(comparison, rows, pool));
  if (recommendation.row != nullptr) {
    add(best_distributed(comparison, pool, *recommendation.row));
    add(more_accurate(comparison, pool, *recommendation.row));
  }
  const auto use = cpu_use(comparison);
  if (use && use->is_shared && !pool.empty()) {
    add(use->words + ": with a CPU for each, times and their order may differ");
  }
  return verdict;
}

std::string paragraph_of(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& sentence : sentences) text += (text.empty() ? "" : " ") + sentence;
  return text;
}

}  // namespace syncopate::bench
