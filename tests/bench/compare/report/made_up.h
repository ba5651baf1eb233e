// Small comparisons with known numbers, for tests of reports.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// A run with one evaluation per 100 samples; a sample takes `seconds_per_sample`.
ComparedRun made_up_run(std::uint64_t seed, const std::vector<double>& accuracies,
                        double seconds_per_sample);
ComparedRun failed_run(std::uint64_t seed, const std::string& reason);
ComparedRun pending_run();

// A variant with one run per element: each reaches 95 % after the given seconds and ends with the
// given accuracy.
ComparedVariant made_up_variant(const std::string& label, int workers,
                                const std::vector<double>& seconds_to_95,
                                const std::vector<double>& final_accuracies);

// A comparison under the real clock with a target of 95 %.
Comparison made_up_comparison(std::vector<ComparedVariant> variants);

// A comparison that has every plot. The first label is a variant with one worker; each other one
// has two workers with times, bytes, staleness and a prediction, and a failed run.
Comparison with_everything(const std::vector<std::string>& labels);

}  // namespace syncopate::bench
