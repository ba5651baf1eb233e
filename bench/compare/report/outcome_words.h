// Makes the sentences about a comparison from its numbers. A sentence has no clause between subject
// and verb; the conditions of a result are in separate sentences.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/compare/report/outcome.h"

namespace syncopate::bench {

// The largest number of words in a verdict. A word contains a letter or a digit.
inline constexpr std::size_t kMostVerdictWords = 30;
std::size_t count_words(const std::string& text);

std::string interval_text(TimeRatio ratio);  // " (1.2 to 1.9)"; "" if the interval is infinite
// Returns the text that a table shows in place of the time to the target for a row without this
// time: "2 of 5" (runs that reached the target), "busy", "failed", "pending" or "left out".
std::string state_text(const RowOutcome& cell);

// Returns the winners that are shown to be sooner than the next row. The other winners are only not
// shown to be slower than the soonest one.
std::vector<std::size_t> recommended_rows(const Outcome& outcome);

// Returns whether there are more than two winners and they are exactly the rows with several
// workers.
bool are_all_with_workers(const Outcome& outcome);
// Returns the names of the winners, such as "async or ssp:3"; or "any eight-worker strategy" if
// are_all_with_workers().
std::string winners_text(const Outcome& outcome);

// The two parts of the answer's sentence. There is no full stop after `use`, and `why` begins with
// a small letter.
struct AnswerWords {
  std::string use;  // "Use async"
  std::string why;  // "it is 1.3 times sooner than the next, 1 backup worker (1.1 to 1.7)"
};
AnswerWords answer_words(const Outcome& outcome);
// Returns the answer in one sentence of at most kMostVerdictWords words, such as "Use async: it is
// ...".
std::string verdict_sentence(const Outcome& outcome);
// Returns the sentence, which makes a claim, with "At untuned rates, " or "At tuned rates, " before
// it if the learning rates were not chosen by the user.
std::string prefixed_with_rates(const Comparison& comparison, std::string sentence);
// Returns "about 5 minutes", rounded up.
std::string minutes_words(double seconds);
// Returns a learning rate with two digits, rounded down.
std::string rate_text(double rate);
// Returns a sentence that says what the user can do next to get an answer or to choose, such as
// "Next: --seeds 10 with the same --report."; "" if there is nothing to suggest.
std::string next_sentence(const Outcome& outcome);
// Returns a question such as "Which strategy trains mlp on digits to 95 % soonest with 8 workers?"
std::string question_of(const Outcome& outcome);
// Returns the conditions of the comparison, such as "mlp on digits, 8 workers, --service-time
// exponential:1, simulated; 5 seeds".
std::string setting_sentence(const Outcome& outcome);
// Returns text that says from which run the target was derived, such as ", 98 % of the best of
// one-device". Returns "" if the user gave the target.
std::string target_source(const Comparison& comparison);

// The rows `below` that ended less accurate than the row `best`, as tests show. `best` is the row
// with the largest such difference to another row; nullopt if no test shows a difference.
struct AccuracyLosses {
  std::optional<std::size_t> best;
  std::vector<std::size_t> below;
  double largest = 0.0;  // largest loss of a row of `below`, as a fraction
  double low = 1.0;      // lowest mean accuracy of all rows
  double high = 0.0;
  bool is_tested = false;      // whether there are enough seeds to compare accuracies
  bool is_of_several = false;  // in a map: this is the largest of the losses of several clusters
};
AccuracyLosses accuracy_losses(const Outcome& outcome);
// Returns a sentence such as "Accuracy: async ended 1.4 points below all-reduce."; "" if there are
// fewer than two rows, or if no row has an accuracy.
std::string accuracy_sentence(const AccuracyLosses& losses, const Rows& rows);

}  // namespace syncopate::bench
