// Flags whose value is several named ones: "worker=2,at=30s".
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate {

using Fields = std::map<std::string, std::string, std::less<>>;

// Nothing when a part has no "=" or a name comes twice. "" has no fields.
std::optional<Fields> parse_fields(std::string_view text);

}  // namespace syncopate
