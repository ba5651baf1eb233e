#include "tests/end_to_end/support/metrics_lines.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace syncopate::test {

std::vector<nlohmann::json> metrics_lines(const std::filesystem::path& file,
                                          const std::string& event) {
  std::vector<nlohmann::json> lines;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    auto json = nlohmann::json::parse(line);
    if (event.empty() || json.at("event") == event) lines.push_back(std::move(json));
  }
  return lines;
}

nlohmann::json summary_of(const std::filesystem::path& file) {
  const auto lines = metrics_lines(file);
  if (lines.empty() || lines.back().at("event") != "summary") {
    throw std::runtime_error(file.string() + " does not end with a summary");
  }
  return lines.back();
}

}  // namespace syncopate::test
