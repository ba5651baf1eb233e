// The sentences of a comparison, made from its numbers. A sentence has no clause between subject
// and verb; what a result depends on stands elsewhere.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/compare/report/outcome.h"

namespace syncopate::bench {

// The most words of a verdict; a word has a letter or a digit.
inline constexpr std::size_t kMostVerdictWords = 30;
std::size_t count_words(const std::string& text);

std::string interval_text(TimeRatio ratio);  // " (1.2 to 1.9)"; "" if it is infinite
// Returns the names as "a, b or c".
std::string listed_or(const std::vector<std::string>& names);
// Returns the text that stands in place of a time: "2 of 5", "busy", "failed" or "pending".
std::string state_text(const RowOutcome& cell);

// Returns whether the winners are exactly the rows with several workers, and are more than two.
bool are_all_with_workers(const Outcome& outcome);
// Returns the winners, such as "async or ssp:3", or "any eight-worker strategy" if all of them won.
std::string winners_text(const Outcome& outcome);

// The answer in two parts, without capital and full stop between them.
struct AnswerWords {
  std::string use;  // "Use async"
  std::string why;  // "it is 1.3 times sooner than the next, 1 backup worker (1.1 to 1.7)"
};
AnswerWords answer_words(const Outcome& outcome);
// Returns the answer in one sentence of at most kMostVerdictWords, "Use async: it is ...".
std::string verdict_sentence(const Outcome& outcome);
// Returns what would give an answer, or help to choose; "" if nothing is needed.
std::string next_sentence(const Outcome& outcome);
// Returns a question such as "Which strategy trains mlp on digits to 95 % soonest with 8 workers?"
std::string question_of(const Outcome& outcome);
// Returns the conditions of the comparison, such as "mlp on digits, 8 workers, --service-time
// exponential:1, simulated; 5 seeds".
std::string setting_sentence(const Outcome& outcome);
// Returns where the target comes from: ", 98 % of the best of one-device" for a derived target; ""
// for a given one.
std::string target_source(const Comparison& comparison);

// The rows that ended less accurate than the most accurate one.
struct AccuracyLosses {
  std::optional<std::size_t> best;
  std::vector<std::size_t> below;
  double largest = 0.0;  // a fraction
  double low = 1.0;      // of all mean accuracies
  double high = 0.0;
  bool is_tested = false;      // there are enough seeds to compare
  bool is_of_several = false;  // `largest` is of one row or cluster among several
};
AccuracyLosses accuracy_losses(const Outcome& outcome);
// Returns a sentence such as "Accuracy: async ended 1.4 points below all-reduce."; "" without
// accuracies.
std::string accuracy_sentence(const AccuracyLosses& losses, const Rows& rows);

}  // namespace syncopate::bench
