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

std::string count_word(std::size_t count);   // "five"; digits from nine on
std::string interval_text(TimeRatio ratio);  // " (1.2 to 1.9)"; "" if it is infinite
// Returns the names as "a, b or c".
std::string listed_or(const std::vector<std::string>& names);

// Whether the winners are all rows with several workers, more than two, and no other.
bool are_all_with_workers(const Outcome& outcome);
// "async or ssp:3"; "any eight-worker strategy" if all of them won.
std::string winners_text(const Outcome& outcome);
// "next", or "best sync" if all winners are of another kind than the next row.
std::string rank_of_next(const Outcome& outcome);

// Which variant to use: one of seven forms, at most kMostVerdictWords.
std::string verdict_sentence(const Outcome& outcome);
// Whether there are enough seeds to compare final accuracies.
bool has_tested_accuracies(const Outcome& outcome);
// Which variants ended less accurate; "" without accuracies.
std::string accuracy_sentence(const Outcome& outcome);
// What would give an answer, or help to choose; "" if nothing is needed.
std::string next_sentence(const Outcome& outcome);
// "Which strategy trains mlp on digits soonest with 8 workers?"
std::string question_of(const Outcome& outcome);
// "mlp on digits, 8 workers, exponential step times of 1 ms, simulated; 5 seeds"
std::string setting_sentence(const Outcome& outcome);

// A reason for doubt: one or two words, and at most 15.
struct ShortWarning {
  std::string subject;
  std::string text;
};
// Returns at most three, the most important first.
std::vector<ShortWarning> short_warnings(const Outcome& outcome);

}  // namespace syncopate::bench
