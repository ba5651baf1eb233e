// The plots of a scaling grid, as HTML: against the CPUs asked for, a line per strategy and number
// of threads.
#pragma once

#include <string>

#include "bench/scaling_table.h"

namespace syncopate::bench {

// `number` of the table in the page: names in a page are unique. "" where every row asks for the
// same number of CPUs.
std::string scaling_throughput_plot(const ScalingTable& table, std::size_t number);
std::string scaling_efficiency_plot(const ScalingTable& table, std::size_t number);

}  // namespace syncopate::bench
