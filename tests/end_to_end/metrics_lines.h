// A metrics file, read back.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace syncopate::test {

// All lines, or those of one event. Throws when a line is not JSON.
std::vector<nlohmann::json> metrics_lines(const std::filesystem::path& file,
                                          const std::string& event = "");
// The last line, which must be a summary.
nlohmann::json summary_of(const std::filesystem::path& file);

}  // namespace syncopate::test
