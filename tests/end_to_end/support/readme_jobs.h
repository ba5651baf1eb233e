// The jobs that deploy/README.md shows, so that tests run the lines that users copy.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/end_to_end/support/training_runs.h"

namespace syncopate::test {

// Returns the words behind "syncopate" of each line that begins with "syncopate sbatch".
std::vector<Arguments> jobs_in_readme();

// Returns the flags of train in the job of the network `model`, without --devices and with other
// values for some flags. Throws std::runtime_error if there is no such job, or a changed flag is
// not in it.
Arguments job_in_readme(const std::string& model,
                        const std::vector<std::pair<std::string, std::string>>& changes);

}  // namespace syncopate::test
