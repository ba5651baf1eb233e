// The report of a scaling grid as one page that needs nothing else: table and plots per network.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench/scaling/scaling_table.h"

namespace syncopate::bench {

struct ScalingReport {
  std::string command;               // that made it; may be empty
  std::string processor;             // its name; may be empty
  std::vector<ScalingTable> tables;  // of a network each
};

// The page is also well-formed XML.
std::string scaling_page(const ScalingReport& report);

// Written whole or not at all. Throws FileError.
void write_scaling_page(const std::filesystem::path& path, const ScalingReport& report);

}  // namespace syncopate::bench
