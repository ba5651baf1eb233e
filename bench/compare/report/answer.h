// The answer of a comparison as numbers: which rows to use and by how much. Terminal, page and JSON
// are made from it. All claims come from claims.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "bench/compare/report/claims.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

enum class AnswerForm : std::uint8_t {
  kWinner,        // one row reached the target sooner than every other
  kTie,           // several rows cannot be told apart from the soonest, the others are slower
  kNoDifference,  // no row is slower than another
  kEqual,         // all rows are within the margin of equality
  kMissed,        // one row reached the target with every seed and others with none
  kNotReached,    // no row reached the target with every seed
  kNotDecided,    // too few seeds, or nothing to compare
  kBusy,          // other programs disturbed the runs
};

// Returns the name of a form in JSON, such as "no difference".
std::string_view name_of(AnswerForm form);

// A ratio of times with its interval.
struct TimeRatio {
  double value = 1.0;
  double low = 1.0;
  double high = 1.0;
};

struct Answer {
  AnswerForm form = AnswerForm::kNotDecided;
  // The rows to use, the soonest first. With kNoDifference and kEqual, all rows.
  std::vector<std::size_t> winners;
  // The soonest row that is slower than the first winner, and its time over that of that winner.
  std::optional<std::size_t> next;
  TimeRatio next_ratio;
  std::vector<std::size_t> missed;  // rows of which no run reached the target
  int seeds = 0;                    // of the row with the fewest
  double detectable = 0.0;          // the factor that these seeds can show; 0 if unknown
};

// Returns the number of seeds that show a factor of 1.2, rounded to tens above 20; empty if it is
// not known or above 1000.
std::optional<int> seeds_needed(const Answer& answer);

Answer answer_of(const Comparison& comparison, const Rows& rows, const Claims& claims);

// Returns the geometric mean of a row's times to the target; empty unless every run reached it,
// after some time.
std::optional<double> mean_time(const VariantSummary& row);

// Returns the time of row `a` over that of row `b` with its interval; empty if they were not
// compared.
std::optional<TimeRatio> time_ratio(const Claims& claims, std::size_t a, std::size_t b);

}  // namespace syncopate::bench
