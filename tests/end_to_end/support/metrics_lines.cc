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
  // The line of a worker that got no CPU at its end may follow the summary of another worker.
  const auto lines = metrics_lines(file, "summary");
  if (lines.empty()) throw std::runtime_error(file.string() + " has no summary");
  return lines.back();
}

}  // namespace syncopate::test
