// Makes up small comparisons with known numbers, for tests of reports.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// Returns a run with one evaluation per 100 samples; a sample takes `seconds_per_sample`.
ComparedRun made_up_run(std::uint64_t seed, const std::vector<double>& accuracies,
                        double seconds_per_sample);
ComparedRun failed_run(std::uint64_t seed, const std::string& reason);
ComparedRun pending_run();

// Returns a variant with one run per element: each run reaches 95 % after the given seconds and
// ends with the given accuracy.
ComparedVariant made_up_variant(const std::string& label, int workers,
                                const std::vector<double>& seconds_to_95,
                                const std::vector<double>& final_accuracies);

// Returns a comparison under the real clock with a target accuracy of 95 %.
Comparison made_up_comparison(std::vector<ComparedVariant> variants);

// Returns a comparison that has every plot. The variant of the first label has one worker; each
// other variant has two workers with times, bytes, staleness and a prediction, and a failed run.
Comparison with_everything(const std::vector<std::string>& labels);

}  // namespace syncopate::bench
