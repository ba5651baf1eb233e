// The plots of a comparison. The index of a variant in the comparison is its colour and marker in
// every plot. A plot without anything to show is left out.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/outcome.h"
#include "bench/plots/axis.h"
#include "bench/plots/document.h"

namespace syncopate::bench {

// Draws a row for each variant, the soonest first, with a dot for each run, on a logarithmic axis.
// A bar is the interval of the ratio to the soonest, drawn at its time times the ratio: a bar that
// touches the dashed line of the soonest is too close to call. The outcome has a soonest row.
Picture time_figure(const Outcome& outcome, FigureForm form);

// Draws the mean accuracy over the seeds against seconds, of the best variant of each kind. The
// outcome has a soonest row.
Picture accuracy_figure(const Outcome& outcome, FigureForm form);

// Plots accuracy and loss of the watched split, against samples and against seconds.
std::vector<NamedPlot> learning_plots(const Comparison& comparison);
// Plots samples per second, the parts of the workers' time and the staleness of gradients.
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
