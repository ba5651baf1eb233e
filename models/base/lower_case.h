// Text in lower case, for names that may be written in any case.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace syncopate {

// Returns the text with its ASCII letters in lower case.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return lower;
}

}  // namespace syncopate
