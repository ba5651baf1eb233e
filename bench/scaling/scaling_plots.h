// Draws the plots of a scaling grid as HTML, with one line per strategy and number of threads,
// against the requested CPUs.
#pragma once

#include <string>

#include "bench/scaling/scaling_table.h"

namespace syncopate::bench {

// Both return "" if all rows request an equal number of CPUs.
std::string scaling_throughput_plot(const ScalingTable& table);
std::string scaling_efficiency_plot(const ScalingTable& table);

}  // namespace syncopate::bench
