// Looks for words in a text that a program or an error printed.
#pragma once

#include <gtest/gtest.h>

#include <string_view>

namespace syncopate {

// Succeeds if `text` contains each of `parts`. The result names the text and the first part that
// is missing, so that an assertion needs no message of its own.
template <typename... Parts>
testing::AssertionResult contains(std::string_view text, const Parts&... parts) {
  for (const std::string_view part : {std::string_view(parts)...}) {
    if (text.find(part) == std::string_view::npos) {
      return testing::AssertionFailure() << "no '" << part << "' in: " << text;
    }
  }
  return testing::AssertionSuccess() << "found in: " << text;
}

// Succeeds if `text` contains none of `parts`.
template <typename... Parts>
testing::AssertionResult lacks(std::string_view text, const Parts&... parts) {
  for (const std::string_view part : {std::string_view(parts)...}) {
    if (text.find(part) != std::string_view::npos) {
      return testing::AssertionFailure() << "there is '" << part << "' in: " << text;
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace syncopate
