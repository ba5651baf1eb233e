// The flags of train that a user of compare may give for every run, behind `--`.
#pragma once

#include <string>
#include <vector>

namespace syncopate::bench {

// Throws UsageError for a flag that compare gives each run itself, naming it and what to give
// instead: the runs would be others than those that the report tells of.
void require_flags_that_are_free(const std::vector<std::string>& train_flags);

}  // namespace syncopate::bench
