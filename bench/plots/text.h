// Text for people: numbers with a fixed number of digits, escaping for HTML and CSV, and line
// breaking for terminals. Labels and failure reasons come from files and are not trusted, so there
// is an escaping function for each output format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace syncopate::bench {

// Returns text for a terminal. Line ends and tabs become blanks; other control characters, which
// could move the cursor, become '?'.
std::string plain_text(std::string_view text);
// Returns text for HTML and SVG and their attributes: plain_text() with < > & " ' as entities.
std::string html_text(std::string_view text);
// Returns a field of CSV, in quotes if the text has a comma, a quote or a line end. Source: RFC
// 4180.
std::string csv_field(std::string_view text);

// Returns the number of characters, not bytes, of UTF-8 text.
std::size_t width_of(std::string_view text);
// Returns at most `most` characters; a longer text is cut and ends with an ellipsis.
std::string shortened(std::string_view text, std::size_t most);

inline constexpr std::size_t kTerminalWidth = 100;
// Breaks the text into lines of at most `width` characters.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

// Returns the text with its first letter in upper case.
std::string capitalised(std::string text);

// Joins names to a list: "A", "A and B", "A, B and C"; last: the word before the last name.
std::string listed(const std::vector<std::string>& words, std::string_view last = "and");

// Returns the number with `decimals` decimals, such as "12,345.6"; "-" for NaN and infinities.
std::string decimal_text(double value, int decimals);
// Returns the number without zeros at the end of its decimals, such as "0.5" for "0.50".
std::string without_zeros(std::string text);
// Returns a number that a user chose, such as "0.1". It has at most seven significant digits, so
// that rounding errors of a mean or of a float do not appear.
std::string exact_text(double value);
// Returns a number with three significant digits: "12,345", "173", "0.52".
std::string short_text(double value);
std::string seconds_text(double seconds);                  // "173 s"
std::string percent_text(double fraction);                 // "95 %", "97.25 %"
std::string points_text(double fraction);                  // percentage points: "1.42"
std::string factor_text(double factor);                    // "3.9x"
std::string count_text(int count, std::string_view noun);  // "1 seed", "3 seeds"

}  // namespace syncopate::bench
