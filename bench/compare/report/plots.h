// Which plots a comparison is shown in. Each function returns HTML, "" where there is nothing to
// draw. The number of a variant among all is its colour and marker in every plot.
#pragma once

#include <string>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// Test accuracy and loss, against samples and against seconds: four plots.
std::string curve_plots(const Comparison& comparison);
// Time to the target: bars.
std::string target_plot(const Comparison& comparison);
// Samples per second against workers, where there are several numbers of workers.
std::string throughput_plot(const Comparison& comparison);
// Bytes that workers sent and received, where they were counted.
std::string bytes_plot(const Comparison& comparison);
// Communication of a step as predicted from the link, and as measured.
std::string prediction_plot(const Comparison& comparison);
// How stale gradients were: a panel per variant.
std::string staleness_plots(const Comparison& comparison);
// Where each worker's time went: a panel per variant.
std::string time_plots(const Comparison& comparison);

}  // namespace syncopate::bench
