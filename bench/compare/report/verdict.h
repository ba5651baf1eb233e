// What a comparison shows: which variants to use, whether synchronous or asynchronous training was
// better, and what the reader should know before believing it. All claims come from claims.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/report/claims.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

// One row of the table of warnings.
struct Warning {
  std::string subject;  // one to three words
  std::string text;     // without a full stop
};

// Labels and failure reasons in the texts are not escaped.
struct Verdict {
  // Sentences with full stops, each if it applies: which variants to use and which are left out,
  // because runs failed or are missing or have an accuracy that is not a number; synchronous
  // against asynchronous, several workers against one, which variants to use over several machines,
  // and which ended more accurate.
  std::vector<std::string> sentences;
  std::vector<Warning> warnings;         // the most important first
  std::vector<std::string> recommended;  // labels of the variants to use; empty: none
};

// The number of warnings that the terminal and the page show.
inline constexpr std::size_t kShownWarnings = 5;

Verdict verdict(const Comparison& comparison);

// Returns the warnings of a comparison. rows: summarise(comparison).
std::vector<Warning> warnings(const Comparison& comparison, const Rows& rows);
// Returns the warning about the seed with which the speed of the rows deviated most; empty if the
// deviation is small.
std::optional<Warning> uneven_machine(const Comparison& comparison, const Rows& rows);

// Returns what the table and its numbers mean, for one paragraph below it: the number of seeds,
// what the deviations and intervals are, and which variants ended with equal weights. plus_minus:
// the sign before a deviation in the table.
std::string explanation(const Comparison& comparison, const Rows& rows,
                        std::string_view plus_minus);

// Writes the verdict and the numbers behind it into DIR/comparison.json, in place of an earlier
// verdict. Numbers that are not known are null. Throws FileError.
//   "answer": {"form":FORM, "winners":[NAME, ...], "next":NAME, "next_ratio":R, "low":L, "high":H,
//     "seeds":N},
//   "rows": [{"name":N, "samples_to_target":MEAN, "runs_to_target":N, "speed_up":OVER_FIRST_ROW,
//     "speed_up_over_one_worker":F, "dropped_gradients":SHARE}, ...],
//   "fastest_with_one_worker": NAME,
//   "recommended": [LABEL, ...], "verdict": [SENTENCE, ...],
//   "warnings": [{"subject":S, "text":T}, ...],
//   "claims": {"family_level":P, "pairs":[{"measure":"accuracy"|"log_time", "a":LABEL, "b":LABEL,
//     "difference":D, "low":L, "high":H, "level":P, "adjusted_p":P, "detectable":D,
//     "evaluation_share":S, "claimed":B}, ...]}
void keep_verdict(const std::filesystem::path& dir, const Comparison& comparison,
                  const Verdict& verdict);

}  // namespace syncopate::bench
