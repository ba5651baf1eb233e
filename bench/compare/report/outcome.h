// A comparison with its answer: which rows to use, and by how much they are better. Terminal text,
// figures, page and JSON are made from an Outcome. All claims come from claims.h.
#pragma once

#include <cmath>
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
  // One row reached the target sooner than every other row that has a time.
  kWinner,
  kTie,           // several rows may be the soonest; the others are slower
  kNoDifference,  // no row is slower than another
  kEqual,         // all rows are shown to be equal, within the margin
  // Some rows reached the target with every seed, and no difference between their times is shown.
  // At least one row that missed the target with some seeds is shown to take longer.
  kMissed,
  kNotReached,  // no row reached the target with every seed
  kNotDecided,  // too few seeds, or nothing to compare
  kBusy,        // other programs disturbed the runs
};

// Returns the name of the form in JSON files, such as "no difference".
std::string_view name_of(AnswerForm form);

// A ratio of two times, and the confidence interval of the ratio.
struct TimeRatio {
  double value = 1.0;
  double low = 1.0;
  double high = 1.0;

  bool has_interval() const noexcept { return std::isfinite(low) && std::isfinite(high); }
};

struct Answer {
  AnswerForm form = AnswerForm::kNotDecided;
  // The rows that the answer recommends, the row that reached the target soonest first. If `form`
  // is kNoDifference or kEqual, these are all rows.
  std::vector<std::size_t> winners;
  // next: the soonest row that is shown to be slower than a winner. reference: the winner that
  // `next` is shown to be slower than; the first winner if possible. next_ratio: the time of `next`
  // divided by the time of `reference`.
  std::optional<std::size_t> next;
  std::size_t reference = 0;
  TimeRatio next_ratio;
  std::vector<std::size_t> missed;  // rows with runs that missed the target
  // Whether all rows of `missed` are shown to take longer than the first winner.
  bool are_misses_shown = true;
  int seeds = 0;  // number of seeds of the row with the fewest seeds
  // detectable: the smallest factor between the times of two rows that a comparison with `seeds`
  // seeds finds with a probability of 80 %. seeds_needed: the number of seeds with which a factor
  // of 1.2 is found, or with which a claim becomes possible. Both are nullopt if unknown or too
  // large to be useful.
  std::optional<double> detectable;
  std::optional<int> seeds_needed;

  // Returns whether the answer states a result.
  bool is_claim() const noexcept {
    return has_winners() || form == AnswerForm::kNoDifference || form == AnswerForm::kEqual;
  }
  // Returns whether the answer recommends rows.
  bool has_winners() const noexcept {
    return form == AnswerForm::kWinner || form == AnswerForm::kTie || form == AnswerForm::kMissed;
  }
};

enum class RowState : std::uint8_t {
  kWinner,   // the only row to use
  kTie,      // not shown to be slower than the soonest row
  kReached,  // all runs reached the target
  kMissed,   // some runs did not reach the target
  kBusy,     // other programs disturbed the runs
  kFailed,   // runs failed
  kPending,  // runs are missing
  kLeftOut,  // the learning rate is too large (VariantSummary::better_rate)
};

// The result of a row of the comparison, that is, of one variant.
struct RowOutcome {
  RowState state = RowState::kPending;
  double seconds = 0.0;  // geometric mean of the times to the target
  double ratio = 0.0;    // `seconds` over the shortest time of all rows; 0 without a time
  int reached = 0;       // runs that reached the target
  int runs = 0;
  std::optional<TimeRatio> over_best{};  // the ratio with its interval; nullopt for the soonest row
};

// A comparison with its answer and the result of each row.
struct Outcome {
  std::string cluster;  // in a map: the name of the cluster; otherwise ""
  Comparison comparison;
  Rows rows;
  Claims claims;
  Answer answer{};
  std::vector<RowOutcome> cells{};  // one for each row
  std::optional<std::size_t> soonest{};
};

// Returns the indices of the rows, the row that reached the target soonest first. Rows without a
// time come last, in the order of the command line.
std::vector<std::size_t> sorted_rows(const Outcome& outcome);

// Computes the answer of a comparison and the result of each row. cluster: the name of the cluster
// in a map of strategies; otherwise "".
Outcome outcome_of(std::string cluster, Comparison comparison);

// Returns the rows that claims leave out because their learning rates are too large.
std::vector<std::size_t> left_out_rows(const Outcome& outcome);

}  // namespace syncopate::bench
