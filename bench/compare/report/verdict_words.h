// The words that the sentences of a verdict have in common: names of rows, times, learning rates,
// and what the claims say about a pair of rows.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench/compare/report/claims.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/report/summary.h"

namespace syncopate::bench {

using RowIndices = std::vector<std::size_t>;

// Returns the text with its first letter in upper case.
std::string capitalised(std::string text);

// Refers to the comparison, its rows and its claims, which must outlive it.
class VerdictWords {
 public:
  VerdictWords(const Comparison& comparison, const Rows& rows, const Claims& claims)
      : comparison_(comparison), rows_(rows), claims_(claims) {}

  std::string name(std::size_t row) const { return named(rows_[row]); }
  std::string names(const RowIndices& rows) const;   // "a, b and c"
  std::string either(const RowIndices& rows) const;  // "a, b or c"
  std::string target() const;                        // "95 %"
  std::string seconds(double value) const;           // "1.57 virtual s"
  // Returns the mean time to the target of a row that has one.
  std::string mean_time(std::size_t row) const;
  std::string mean_times(const RowIndices& rows) const;
  // Returns "5 seeds": those of the row with the fewest.
  std::string seeds(const RowIndices& rows) const;
  int fewest_seeds(const RowIndices& rows) const;

  // Returns how learning rates were chosen: "at one learning rate, 0.01, not tuned, ".
  std::string rates() const;
  // Whether the learning rate of each variant was chosen for it or scaled with its updates. If not,
  // a difference may be that of the rate, and no kind of training "beats" the other.
  bool has_suitable_rates() const;
  // Returns the conditions that a result holds under: rates(), the virtual clock, injected faults.
  std::string setting() const;
  // Returns the faults of all runs, such as "link delay 2ms and link rate 1gbit"; "" without any.
  std::string faults() const;

  // Returns "; a factor of 1.8 would have been seen with a probability of about 80 %": the largest
  // factor that is needed between the first row and any of the others, with the name of that row;
  // "" if it is not known. If the first evaluation of a row reached the target, says that instead.
  std::string detectable(const RowIndices& rows, Measure measure) const;
  // Returns "1.8 over a": the factor between any of `rows` and row a that is large enough, and
  // whether it is more than their workers and CPUs allow; "" if it is not known for all of them.
  std::string detectable_over(std::size_t a, const RowIndices& rows) const;
  // Returns what is claimed about a pair's times: "a took 1.9x as long as b (1.2x to 3.1x)".
  std::string times(const PairDifference& time) const;
  // Returns "async reached 95 % with 3 of 5 seeds (1 failed; median 1.2 s)".
  std::string reached(std::size_t row) const;
  // Returns why nothing is claimed about a row: "busy machine", "4 of 5 seeds, 1 failed".
  std::string why_no_claim(std::size_t row, Measure measure) const;
  std::optional<double> median(std::size_t row) const;
  // Compares two final accuracies: "a ended 1.40 points lower than b (1.17 to 1.63)".
  std::string accuracies(std::size_t a, std::size_t b) const;

 private:
  const Comparison& comparison_;
  const Rows& rows_;
  const Claims& claims_;
};

// Compares the best synchronous with the best asynchronous variant of `pool`, in a sentence without
// full stop; "" if there are not both.
std::string compare_kinds(const Comparison& comparison, const Rows& rows, const Claims& claims,
                          const RowIndices& pool);

}  // namespace syncopate::bench
