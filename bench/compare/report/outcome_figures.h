// The two figures of a comparison: the time of every run, and accuracy against time.
#pragma once

#include <string>

#include "bench/compare/report/outcome.h"

namespace syncopate::bench {

enum class FigureForm : std::uint8_t {
  kWide,    // for a page of 1120 units, beside the other figure
  kNarrow,  // for a phone
  kFile,    // the wide one as an SVG file of its own
};

// Draws a row for each variant, the soonest first, with a dot for each run, on a logarithmic axis.
// A bar is the interval of the ratio to the soonest, drawn at its time times the ratio: a bar that
// touches the dashed line of the soonest is too close to call. "" if no row has a time.
std::string time_figure(const Outcome& outcome, FigureForm form);

// Draws the median accuracy over the seeds against seconds, of the best variant of each kind. "" if
// no row has a time.
std::string accuracy_figure(const Outcome& outcome, FigureForm form);

}  // namespace syncopate::bench
