// Reads the metrics file of a run, which has one JSON object per line.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace syncopate::test {

// Returns all lines of a metrics file, or the lines of one event. Throws if a line is not JSON.
std::vector<nlohmann::json> metrics_lines(const std::filesystem::path& file,
                                          const std::string& event = "");
// Returns the last summary of a metrics file. Throws if there is none.
nlohmann::json summary_of(const std::filesystem::path& file);

}  // namespace syncopate::test
