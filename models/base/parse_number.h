// Reads a number from text.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace syncopate {

// Returns the number that the whole text is, as std::from_chars() reads it: without blanks or a
// plus sign. Returns nothing for another text, and for a number that the type cannot hold.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

}  // namespace syncopate
