// Prints a plan as a table for people and as JSON for programs.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "bench/plan/plan.h"

namespace syncopate::bench {

// Returns the name of an algorithm in tables and JSON, such as "tree".
std::string_view name_of(AllReduce all_reduce);

// Prints the measurements and assumptions, and one line per strategy and number of workers.
void print_plan(std::ostream& out, const PlanOptions& options, const Plan& plan);
std::string json_of(const PlanOptions& options, const Plan& plan);

}  // namespace syncopate::bench
