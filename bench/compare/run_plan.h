// Which runs a comparison is made of, and what each tells train.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/compare/compare_options.h"

namespace syncopate::bench {

// Updates of one run: the samples that one takes follow from who keeps step. Budget::kSeconds: of
// so many passes over the data, between which it evaluates as often as over a run.
std::int64_t updates_of(const CompareOptions& options, const Variant& variant,
                        std::int64_t train_samples);

// Compute lanes of every worker: 1, unless the flags for every run say otherwise.
int threads_per_worker(const CompareOptions& options);

// Seed by seed, every variant once per seed, so that what a comparison that was stopped has done is
// balanced. train_samples: in the training split. Throws UsageError for two variants of one label.
std::vector<RunSpec> plan_runs(const CompareOptions& options, std::int64_t train_samples);

}  // namespace syncopate::bench
