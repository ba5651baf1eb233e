// Comparisons made by hand, small enough to check what is said of them.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// A run that was measured after each of 100, 200, ... samples; a sample takes `seconds_per_sample`.
ComparedRun made_up_run(std::uint64_t seed, const std::vector<double>& accuracies,
                        double seconds_per_sample);
ComparedRun failed_run(std::uint64_t seed, const std::string& reason);
ComparedRun pending_run();

// A variant whose runs reach 95 % after so many seconds each, and end with these accuracies.
ComparedVariant made_up_variant(const std::string& label, int workers,
                                const std::vector<double>& seconds_to_95,
                                const std::vector<double>& final_accuracies);

// Target 95 %, real clock.
Comparison made_up_comparison(std::vector<ComparedVariant> variants);

// Of variants with these labels, the first alone on one worker, the others with times, bytes,
// staleness, a prediction and a failed run each: every plot.
Comparison with_everything(const std::vector<std::string>& labels);

}  // namespace syncopate::bench
