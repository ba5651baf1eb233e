// A comparison with its answer and the numbers of its rows: what to use and by how much. Terminal,
// figures, page and JSON are made from it. All claims come from claims.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/report/claims.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

enum class AnswerForm : std::uint8_t {
  kWinner,        // one row reached the target sooner than every other that has a time
  kTie,           // several rows may be the soonest, the others are slower
  kNoDifference,  // no row is slower than another
  kEqual,         // all rows are within the margin of equality
  kMissed,      // some rows reached the target with every seed, and the others are shown to miss it
  kNotReached,  // no row reached the target with every seed
  kNotDecided,  // too few seeds, or nothing to compare
  kBusy,        // other programs disturbed the runs
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
  // The soonest row that is shown to be slower than a winner, that winner (the first one if
  // possible), and the ratio of their times.
  std::optional<std::size_t> next;
  std::size_t reference = 0;
  TimeRatio next_ratio;
  std::vector<std::size_t> missed;  // rows with runs that missed the target
  bool are_misses_shown = true;     // all of them are shown to take longer than the first winner
  int seeds = 0;                    // of the row with the fewest
  // The factor that these seeds show with a probability of 80 %, and the number of seeds that would
  // show a factor of 1.2 or decide at all; empty if unknown or too large to exist.
  std::optional<double> detectable;
  std::optional<int> seeds_needed;

  // Whether the answer names what to use.
  bool has_winners() const noexcept {
    return form == AnswerForm::kWinner || form == AnswerForm::kTie || form == AnswerForm::kMissed;
  }
};

enum class RowState : std::uint8_t {
  kWinner,   // the only row to use
  kTie,      // may be as soon as the soonest
  kReached,  // all runs reached the target
  kMissed,   // some runs did not reach the target
  kBusy,     // other programs disturbed the runs
  kFailed,   // runs failed
  kPending,  // runs are missing
};

// What a row shows.
struct RowOutcome {
  RowState state = RowState::kPending;
  double seconds = 0.0;  // geometric mean of the times to the target
  double ratio = 0.0;    // over the least of all rows; 0 without a time
  int reached = 0;       // runs that reached the target
  int runs = 0;
  std::optional<TimeRatio> over_best{};  // the ratio with its interval; empty for the soonest
};

// A comparison with its answer.
struct Outcome {
  std::string cluster;  // its name, in a map; "" otherwise
  Comparison comparison;
  Rows rows;
  Claims claims;
  Answer answer;
  std::vector<RowOutcome> cells;  // one for each row
  std::optional<std::size_t> soonest{};
};

// Returns the rows, the soonest first; those without a time in the order of the command line.
std::vector<std::size_t> sorted_rows(const Outcome& outcome);

// Computes the outcome of a comparison.
Outcome outcome_of(std::string cluster, Comparison comparison);

}  // namespace syncopate::bench
