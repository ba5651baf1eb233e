// Returns a string made from a printf pattern, for lines of numbers.
#pragma once

#include <cstdio>
#include <string>

namespace syncopate {

template <typename... Values>
std::string formatted(const char* pattern, Values... values) {
  const int length = std::snprintf(nullptr, 0, pattern, values...);
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::snprintf(text.data(), text.size(), pattern, values...);
  text.pop_back();
  return text;
}

}  // namespace syncopate
