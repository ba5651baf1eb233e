// Writes the report of a scaling grid as one page that needs no network and no script, with a table
// and plots per network.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/scaling/scaling_table.h"

namespace syncopate::bench {

struct ScalingReport {
  std::string command;                 // command line that made the report; may be empty
  std::string processor;               // name of the processor; may be empty
  std::vector<ScalingTable> tables{};  // one table per network
};

// Returns the page of the report, which is HTML and also well-formed XML.
std::string scaling_page(const ScalingReport& report);

// Writes the file of the page completely or leaves the old file unchanged. Throws FileError.
void write_scaling_page(const std::filesystem::path& path, const ScalingReport& report);

}  // namespace syncopate::bench
