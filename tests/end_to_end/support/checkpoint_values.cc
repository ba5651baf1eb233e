#include "tests/end_to_end/support/checkpoint_values.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/support/run_program.h"
#include "tests/support/temporary_folder.h"

namespace syncopate::test {

std::vector<float> newest_checkpoint_values(const std::filesystem::path& folder) {
  const std::vector<std::string> names = names_in(folder);
  if (names.empty()) return {};
  const std::string bytes = read_text(folder / names.back());
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const std::size_t begin = sizeof header_size + header_size;
  const auto header = nlohmann::ordered_json::parse(bytes.substr(sizeof header_size, header_size));
  std::vector<float> values;
  for (const auto& [name, entry] : header.items()) {
    const bool is_parameter = name != "__metadata__" && name.rfind("optimizer.", 0) != 0 &&
                              name.find(".running_") == std::string::npos;
    if (!is_parameter) continue;
    const auto from = entry.at("data_offsets").at(0).get<std::size_t>();
    const auto to = entry.at("data_offsets").at(1).get<std::size_t>();
    const std::size_t old_size = values.size();
    values.resize(old_size + (to - from) / sizeof(float));
    std::memcpy(values.data() + old_size, bytes.data() + begin + from, to - from);
  }
  return values;
}

double relative_distance(const std::vector<float>& found, const std::vector<float>& expected) {
  if (found.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double difference = 0.0;
  double length = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(double{found[i]} - expected[i], 2);
    length += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(difference / length);
}

}  // namespace syncopate::test
