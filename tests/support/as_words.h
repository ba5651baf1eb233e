// Writes the arguments of a program in a test as they are typed.
#pragma once

#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

namespace syncopate {

using Arguments = std::vector<std::string>;

// Adds the words between the blanks of a literal; an empty literal is an empty word.
template <std::size_t kSize>
void add_words(Arguments& words, const char (&text)[kSize]) {
  if (kSize == 1) words.emplace_back();
  std::istringstream in(text);
  for (std::string word; in >> word;) words.push_back(word);
}
inline void add_words(Arguments& words, const std::string& word) { words.push_back(word); }
inline void add_words(Arguments& words, const Arguments& more) {
  words.insert(words.end(), more.begin(), more.end());
}

// as_words("train --steps 3 --metrics", path) returns {"train", "--steps", "3", "--metrics", path}:
// the words of each literal, and any other string or list as it is.
template <typename... Parts>
Arguments as_words(const Parts&... parts) {
  Arguments words;
  (add_words(words, parts), ...);
  return words;
}

}  // namespace syncopate
