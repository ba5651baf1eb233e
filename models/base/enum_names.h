// The names of the values of enumerations in flags, files and messages. An enumeration with names
// has a function named_values() in its namespace:
//   enum class Transport : std::uint8_t { kAuto, kTcp };
//   constexpr auto named_values(Transport) {
//     return std::array{Named{"auto", Transport::kAuto}, Named{"tcp", Transport::kTcp}};
//   }
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace syncopate {

template <typename Enum>
struct Named {
  std::string_view name;
  Enum value;
};
template <typename Enum>
Named(std::string_view, Enum) -> Named<Enum>;

template <typename Enum>
concept HasNames = requires(Enum value) {
  named_values(value);
};

// Returns the name of a value; "" if the value has no name.
template <HasNames Enum>
constexpr std::string_view name(Enum value) noexcept {
  for (const Named<Enum>& row : named_values(value)) {
    if (row.value == value) return row.name;
  }
  return "";
}

// All values with names, in the order of named_values().
template <HasNames Enum>
inline constexpr auto kAllValues = [] {
  constexpr auto kRows = named_values(Enum{});
  std::array<Enum, kRows.size()> values{};
  for (std::size_t i = 0; i < kRows.size(); ++i) values[i] = kRows[i].value;
  return values;
}();

// Returns the value with this name, or nullopt if there is none.
template <HasNames Enum>
constexpr std::optional<Enum> value_named(std::string_view name) noexcept {
  for (const Named<Enum>& row : named_values(Enum{})) {
    if (row.name == name) return row.value;
  }
  return std::nullopt;
}

// Returns all names, in the order of named_values().
template <HasNames Enum>
std::vector<std::string_view> names() {
  std::vector<std::string_view> all;
  for (const Named<Enum>& row : named_values(Enum{})) all.push_back(row.name);
  return all;
}

}  // namespace syncopate
