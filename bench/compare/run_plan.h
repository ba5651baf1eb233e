// The runs of a comparison with their options.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/compare/compare_options.h"

namespace syncopate::bench {

// Returns the number of updates of one run; a synchronous variant trains the samples of all workers
// per update. With Budget::kSeconds, the updates of `epochs` epochs, which only determine the
// distance between evaluations.
std::int64_t updates_of(const CompareOptions& options, const Variant& variant,
                        std::int64_t train_samples);

// Returns the workers of the variant with the most of them.
int most_workers(const CompareOptions& options);

// Returns the compute lanes of every worker: 1 unless the flags for every run say otherwise.
int threads_per_worker(const CompareOptions& options);

// Returns all runs, seed by seed, so that a comparison that was stopped has about the same number
// of runs of each variant. train_samples: the size of the training split. Throws UsageError for two
// variants of one label, and for delays of a pipeline's steps on the real clock.
std::vector<RunSpec> plan_runs(const CompareOptions& options, std::int64_t train_samples);

}  // namespace syncopate::bench
