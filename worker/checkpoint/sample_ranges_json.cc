#include "worker/checkpoint/sample_ranges_json.h"

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>

namespace syncopate {
namespace {

using Json = nlohmann::json;

bool is_count(const Json& number) {
  return number.is_number_unsigned() &&
         number.get<std::uint64_t>() <=
             static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
}

}  // namespace

std::string to_json(std::span<const ps::SampleRange> ranges) {
  Json list = Json::array();
  for (const ps::SampleRange& range : ranges) list.push_back({range.epoch, range.begin, range.end});
  return list.dump();
}

std::optional<std::vector<ps::SampleRange>> parse_sample_ranges(std::string_view text) {
  const Json list = Json::parse(text, nullptr, false);
  if (!list.is_array()) return std::nullopt;
  std::vector<ps::SampleRange> ranges;
  for (const Json& item : list) {
    if (!item.is_array() || item.size() != 3) return std::nullopt;
    for (const Json& number : item) {
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
