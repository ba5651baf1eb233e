#include "models/base/fields.h"

#include <algorithm>

namespace syncopate {

std::optional<Fields> parse_fields(std::string_view text) {
  Fields fields;
  if (text.empty()) return fields;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    if (!fields.emplace(part.substr(0, equals), part.substr(equals + 1)).second) {
      return std::nullopt;
    }
    begin = end + 1;
  }
  return fields;
}

}  // namespace syncopate
