// The beginning of the verdict: which variant to take, as far as the runs can tell. Sentences are
// without their full stops.
#pragma once

#include <optional>
#include <string>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/findings.h"

namespace syncopate::bench {

struct Recommendation {
  const VariantSummary* row = nullptr;  // of the pool; null: none can be recommended
  std::string sentence;
};

// `pool`: choices(rows).
Recommendation recommend(const Comparison& comparison, const Rows& rows, const Rows& pool);

// Where `taken` is of one machine only: which of the others to take over several.
std::optional<std::string> best_distributed(const Comparison& comparison, const Rows& pool,
                                            const VariantSummary& taken);

// Which one ended more accurate than `taken`, for certain.
std::optional<std::string> more_accurate(const Comparison& comparison, const Rows& pool,
                                         const VariantSummary& taken);

}  // namespace syncopate::bench
