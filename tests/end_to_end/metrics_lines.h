// Reads a metrics file back.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace syncopate::test {

// Returns all lines, or the lines of one event. Throws if a line is not JSON.
std::vector<nlohmann::json> metrics_lines(const std::filesystem::path& file,
                                          const std::string& event = "");
// Returns the last line, which must be a summary.
nlohmann::json summary_of(const std::filesystem::path& file);

}  // namespace syncopate::test
