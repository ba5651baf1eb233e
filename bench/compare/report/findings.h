// What verdict.h has to tell apart before it can put it into words: who is first, who cannot be
// told from whom, and by which numbers.
#pragma once

#include <optional>
#include <vector>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/statistics.h"

namespace syncopate::bench {

using Rows = std::vector<VariantSummary>;
// A quantity of a row, such as &VariantSummary::accuracy.
using Quantity = std::optional<Sample> VariantSummary::*;

// `a` minus `b`; nothing unless both have two values of it.
std::optional<Difference> difference(const VariantSummary& a, const VariantSummary& b,
                                     Quantity quantity);

// Of those whose every run reached the target, the one with the least mean time, if there is one.
const VariantSummary* fastest(const Rows& rows);
// The next one.
const VariantSummary* runner_up(const Rows& rows, const VariantSummary& first);
// What others are held against: the first row that has a result.
const VariantSummary* reference(const Rows& rows);
const VariantSummary* most_accurate(const Rows& rows);

// Those whose `quantity` does not differ significantly from that of `first`, which is left out.
// Rows without spread (one seed) are never among them, since nothing tells.
std::vector<const VariantSummary*> not_told_from(const Rows& rows, const VariantSummary& first,
                                                 Quantity quantity);

// The fewest runs that ended well in a row that has any; 0 when none has.
int fewest_seeds(const Rows& rows);

}  // namespace syncopate::bench
