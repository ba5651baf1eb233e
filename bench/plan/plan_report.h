// Prints a plan as a table for people and as JSON for programs.
#pragma once

#include <iosfwd>
#include <string>

#include "bench/plan/plan.h"

namespace syncopate::bench {

// Prints the measurements, the assumptions, and one line per strategy and number of workers.
void print_plan(std::ostream& out, const PlanOptions& options, const Plan& plan);
std::string json_of(const PlanOptions& options, const Plan& plan);

}  // namespace syncopate::bench
