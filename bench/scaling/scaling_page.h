// The report of a scaling grid as one page without network or script: a table and plots per
// network.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/scaling/scaling_table.h"

namespace syncopate::bench {

struct ScalingReport {
  std::string command;               // the command line that made it; may be empty
  std::string processor;             // the name of the processor; may be empty
  std::vector<ScalingTable> tables;  // one per network
};

// The page is also well-formed XML.
std::string scaling_page(const ScalingReport& report);

// Writes the page completely or leaves the old one. Throws FileError.
void write_scaling_page(const std::filesystem::path& path, const ScalingReport& report);

}  // namespace syncopate::bench
