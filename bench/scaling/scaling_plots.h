// The plots of a scaling grid, as HTML: against the CPUs asked for, a line per strategy and number
// of threads.
#pragma once

#include <string>

#include "bench/scaling/scaling_table.h"

namespace syncopate::bench {

// "" where every row asks for the
// same number of CPUs.
std::string scaling_throughput_plot(const ScalingTable& table);
std::string scaling_efficiency_plot(const ScalingTable& table);

}  // namespace syncopate::bench
