// The plots of a comparison. The index of a variant in the comparison is its colour and marker in
// every plot. A plot without anything to show is left out.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"
#include "bench/plots/axis.h"
#include "bench/plots/document.h"

namespace syncopate::bench {

// Plots accuracy and loss of the watched split, against samples and against seconds.
std::vector<NamedPlot> learning_plots(const Comparison& comparison);
// Plots samples per second, the parts of the workers' time and the staleness of gradients.
// Throughput is plotted against the number of workers where variants differ in nothing else.
std::vector<NamedPlot> time_plots(const Comparison& comparison);
// Plots the bytes that workers sent and received, and the communication time of a step, as
// predicted from the link and as measured.
std::vector<NamedPlot> communication_plots(const Comparison& comparison);

// Averages the n-th evaluations of a variant's finished runs, up to the end of the shortest run.
// position: where an evaluation is drawn.
std::vector<Point> mean_curve(const ComparedVariant& variant,
                              Point (*position)(const CurvePoint& evaluation));
// Returns the seconds and the accuracy in percent.
Point accuracy_at_seconds(const CurvePoint& evaluation);

// Accuracies climb from chance at once and differ by little in the end: curves are cut off at this
// many percentage points below the target.
inline constexpr double kShownPoints = 25.0;
// Makes a linear axis for percentages from the multiple of 10 below `low`, with ticks at these.
Axis accuracy_axis(const std::string& title, double low);

}  // namespace syncopate::bench
