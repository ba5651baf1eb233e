// Makes the plots of a comparison. The index of a variant determines its colour and marker in every
// plot. Plots without data are left out.
#pragma once

#include <string>
#include <vector>

#include "bench/compare/report/outcome.h"
#include "bench/plots/axis.h"
#include "bench/plots/document.h"

namespace syncopate::bench {

// Draws the times to the target on a logarithmic axis: a row for each variant, the soonest first,
// with a dot for each run. A bar shows the interval of the row's time: the interval of the ratio to
// the soonest row, times the time of the soonest row. A dashed line marks the time of the soonest
// row; if a bar touches this line, the difference is not certain. outcome.soonest must not be
// nullopt.
Picture time_figure(const Outcome& outcome, FigureForm form);

// Draws accuracy against seconds for the best variant of each Kind (summary.h), as the mean over
// the seeds. outcome.soonest must not be nullopt.
Picture accuracy_figure(const Outcome& outcome, FigureForm form);

// Plots accuracy and loss on the watched split, against samples and against seconds.
std::vector<NamedPlot> learning_plots(const Comparison& comparison);
// Plots samples per second, how workers spent their time, and the staleness of gradients.
std::vector<NamedPlot> time_plots(const Comparison& comparison);
// Returns two plots: the bytes that workers sent and received; and the communication time of a
// step, with one bar for the time predicted from the link and one bar for the measured time.
std::vector<NamedPlot> communication_plots(const Comparison& comparison);

// Returns the mean curve of a variant's successful runs: point n is the mean of the n-th
// evaluations, up to the end of the shortest run. position: a function that returns the point at
// which an evaluation is drawn.
std::vector<Point> mean_curve(const ComparedVariant& variant,
                              Point (*position)(const CurvePoint& evaluation));
// Returns the point with x = seconds and y = accuracy in percent.
Point accuracy_at_seconds(const CurvePoint& evaluation);

// Curves of accuracy begin this many percentage points below the target, because accuracies rise
// fast at first and differ by little in the end.
inline constexpr double kShownPoints = 25.0;
// Makes a linear axis for percentages that begins at the multiple of 10 below `low`, with ticks at
// multiples of 10.
Axis accuracy_axis(const std::string& title, double low);

}  // namespace syncopate::bench
