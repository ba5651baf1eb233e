// Skipped ranges of samples as JSON, as checkpoints keep them.
#include <nlohmann/json.hpp>

#include "worker/checkpoint/checkpoint.h"

namespace syncopate {
namespace {

bool is_count(const nlohmann::json& number) {
  return number.is_number_unsigned() &&
         number.get<std::uint64_t>() <=
             static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

}  // namespace

std::string to_json(std::span<const ps::SampleRange> ranges) {
  auto list = nlohmann::json::array();
  for (const ps::SampleRange& range : ranges) list.push_back({range.epoch, range.begin, range.end});
  return list.dump();
}

std::optional<std::vector<ps::SampleRange>> parse_sample_ranges(std::string_view text) {
  const auto list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array()) return std::nullopt;
  std::vector<ps::SampleRange> ranges;
  for (const nlohmann::json& item : list) {
    if (!item.is_array() || item.size() != 3) return std::nullopt;
    for (const nlohmann::json& number : item) {
      if (!is_count(number)) return std::nullopt;
    }
    const ps::SampleRange range{item[0].get<std::int64_t>(), item[1].get<std::int64_t>(),
                                item[2].get<std::int64_t>()};
    if (range.begin >= range.end) return std::nullopt;
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace syncopate
