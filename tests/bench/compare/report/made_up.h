// Makes up small comparisons with known numbers, for tests of reports.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/compare/report/comparison_report.h"
#include "bench/compare/report/outcome.h"

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

// Seconds to 95 % and final accuracies of five runs, for made_up_variant().
inline const std::vector<double> kSlow = {676, 680, 672, 678, 674};
inline const std::vector<double> kFast = {173, 174, 172, 173.5, 172.5};
inline const std::vector<double> kGood = {0.972, 0.973, 0.971, 0.9725, 0.9715};
inline const std::vector<double> kPoor = {0.958, 0.957, 0.959, 0.9585, 0.9575};

// Returns the variant marked as asynchronous.
ComparedVariant asynchronous(ComparedVariant variant);

// Returns the variant with its first `count` runs at the target and the others below it.
ComparedVariant reaching(ComparedVariant variant, std::size_t count);

// Returns a comparison with scaled learning rates, evaluated every 2 % of the time.
Comparison scaled(std::vector<ComparedVariant> variants);

inline std::string html_page(const Comparison& comparison) {
  return html_page(outcome_of("", comparison));
}
inline void write_comparison_report(const std::filesystem::path& dir,
                                    const Comparison& comparison) {
  write_comparison_report(dir, outcome_of("", comparison));
}

testing::AssertionResult contains_words(const std::string& text, const std::string& words);

// Returns a comparison that has every plot. The variant of the first label has one worker; each
// other variant has two workers with times, bytes, staleness and a prediction, and a failed run.
Comparison with_everything(const std::vector<std::string>& labels);

}  // namespace syncopate::bench
