// The plots of a comparison, as HTML. Each function returns "" if there is nothing to draw. The
// index of a variant in the comparison is its colour and marker in every plot.
#pragma once

#include <string>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// Plots test accuracy and loss, against samples and against seconds: four plots.
std::string curve_plots(const Comparison& comparison);
// Plots the time to the target accuracy, as bars.
std::string target_plot(const Comparison& comparison);
// Plots samples per second: against the number of workers if variants differ in nothing else,
// otherwise as bars.
std::string throughput_plot(const Comparison& comparison);
// Plots the bytes that workers sent and received, for the variants that counted them.
std::string bytes_plot(const Comparison& comparison);
// Plots the communication time of a step, as predicted from the link and as measured.
std::string prediction_plot(const Comparison& comparison);
// Plots the distribution of the staleness of gradients, one panel per variant.
std::string staleness_plots(const Comparison& comparison);
// Plots the parts of each worker's time, one panel per variant.
std::string time_plots(const Comparison& comparison);

}  // namespace syncopate::bench
