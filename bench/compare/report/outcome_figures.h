// The two figures of a comparison: the time of every run, and accuracy against time.
#pragma once

#include "bench/compare/report/outcome.h"
#include "bench/plots/picture.h"

namespace syncopate::bench {

// Draws a row for each variant, the soonest first, with a dot for each run, on a logarithmic axis.
// A bar is the interval of the ratio to the soonest, drawn at its time times the ratio: a bar that
// touches the dashed line of the soonest is too close to call. The outcome has a soonest row.
Picture time_figure(const Outcome& outcome, FigureForm form);

// Draws the mean accuracy over the seeds against seconds, of the best variant of each kind. The
// outcome has a soonest row.
Picture accuracy_figure(const Outcome& outcome, FigureForm form);

}  // namespace syncopate::bench
