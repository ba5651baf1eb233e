// Numbers for messages: "0.001", "1e+300", not hundreds of digits or a zero that is none.
#pragma once

#include <array>
#include <charconv>
#include <string>

namespace syncopate {

// The shortest text that reads back as this number: a float or a double.
template <typename Number>
std::string short_text(Number number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

}  // namespace syncopate
