// Converts names to lower case and splits them into words, for names that may be written in any
// case.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

// Returns the text with its ASCII letters in lower case.
inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char letter) {
    return static_cast<char>(std::tolower(letter));
  });
  return lower;
}

// Returns the words of a name in lower case: "class" and "id" for "class_id" and for "classId".
inline std::vector<std::string> words_of(std::string_view name) {
  const auto at = [&](std::size_t i) {
    return i < name.size() ? static_cast<unsigned char>(name[i]) : static_cast<unsigned char>(' ');
  };
  std::vector<std::string> words = {""};
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool begins = i > 0 && std::isupper(at(i)) != 0 &&
                        (std::isupper(at(i - 1)) == 0 || std::islower(at(i + 1)) != 0);
    if (begins || std::isalnum(at(i)) == 0) words.emplace_back();
    if (std::isalnum(at(i)) != 0) words.back() += name[i];
  }
  std::ranges::transform(words, words.begin(), lower_case);
  return words;
}

}  // namespace syncopate
