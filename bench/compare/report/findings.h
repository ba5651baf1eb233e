// What verdict.h has to tell apart before it can put it into words: who is first, who cannot be
// told from whom, and by which numbers.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/statistics.h"

namespace syncopate::bench {

using Rows = std::vector<VariantSummary>;
// A quantity of a row, such as &VariantSummary::accuracy.
using Quantity = std::optional<Sample> VariantSummary::*;

// Fewer seeds tell too little of spread to be sure of anything.
inline constexpr int kEnoughSeeds = 3;

// `a` minus `b`; nothing unless both have enough seeds.
std::optional<Difference> difference(const VariantSummary& a, const VariantSummary& b,
                                     Quantity quantity);

// How many times as long as `b` took `a` to the target: geometric mean over seeds. Where both have
// the same seeds these are compared pair by pair.
struct TimeRatio {
  double value = 1.0;
  // 95 %; with fewer than kEnoughSeeds the range of what seeds say. Widened by what evaluations
  // leave open: each time may be too long by as much as passed since the evaluation before. high
  // may be infinite.
  Interval interval;
  int seeds = 1;  // of the row that has fewer
  bool is_significant() const noexcept { return !interval.contains(1.0); }
  bool has_enough_seeds() const noexcept { return seeds >= kEnoughSeeds; }
  // False where a run reached the target before its first evaluation.
  bool is_bounded() const noexcept { return interval.low > 0.0 && std::isfinite(interval.high); }
};
// Nothing unless every run of both reached the target, after more than no time.
std::optional<TimeRatio> time_ratio(const VariantSummary& a, const VariantSummary& b);

// All runs of both ended with the same weights, bit for bit.
bool have_same_weights(const VariantSummary& a, const VariantSummary& b);
// ... and after the same time, to the target as well.
bool are_identical(const VariantSummary& a, const VariantSummary& b);

// Of those whose every run reached the target, the one with the least mean time, if there is one.
const VariantSummary* fastest(const Rows& rows);
// What others are held against: the first row that has a result.
const VariantSummary* reference(const Rows& rows);
// Of those, the ones that may be recommended: complete, or if none is, done; and no guessing.
Rows choices(const Rows& rows, const std::optional<Chance>& chance);
const VariantSummary* most_accurate(const Rows& rows);

// Those whose `quantity` does not differ significantly from that of `first`, which is left out.
// Rows with too few seeds are never among them, since nothing tells.
std::vector<const VariantSummary*> not_told_from(const Rows& rows, const VariantSummary& first,
                                                 Quantity quantity);

// The same for times to the target, of however many seeds; those that are identical are not among
// them.
std::vector<const VariantSummary*> not_later_than(const Rows& rows, const VariantSummary& first);
std::vector<const VariantSummary*> identical_to(const Rows& rows, const VariantSummary& first);

// The rows whose updates take the fewest and the most samples, if one takes half as many again as
// the other and all have about the same learning rate; else twice nothing.
struct BatchExtremes {
  const VariantSummary* fewest = nullptr;
  const VariantSummary* most = nullptr;
};
BatchExtremes batches_at_one_rate(const Rows& rows);

// The fewest runs that ended well in a row that has any; 0 when none has.
int fewest_seeds(const Rows& rows);

}  // namespace syncopate::bench
