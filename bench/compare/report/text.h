// Numbers and labels as a reader sees them. Labels and reasons of failures come from files and are
// not trusted: each place they go to has its own way of making them harmless.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// For a terminal: control characters, which could move the cursor, become '?', ends of lines
// blanks.
std::string plain_text(std::string_view text);
// For text and attributes of HTML and SVG: also < > & " ' as entities.
std::string html_text(std::string_view text);
// For a field of CSV: quoted where it must be. Source: RFC 4180.
std::string csv_field(std::string_view text);

// Characters, not bytes, of UTF-8.
std::size_t width_of(std::string_view text);
// At most so many characters, an ellipsis in the place of the rest.
std::string shortened(std::string_view text, std::size_t most);

inline constexpr std::size_t kTerminalWidth = 100;
// Lines of at most so many characters.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

// "12,345.6": with so many decimals; "-" for what is no number.
std::string decimal_text(double value, int decimals);
// "0.1": as many digits as it takes to read the same number again.
std::string exact_text(double value);
// Three significant digits, "12,345", "173", "0.52".
std::string short_text(double value);
std::string seconds_text(double seconds);            // "173 s"
std::string percent_text(double fraction);           // "95 %", "97.25 %": at most two decimals
std::string points_text(double fraction);            // of a difference of accuracies: "1.42"
std::string factor_text(double factor);              // "3.9x"
std::string interval_text(double low, double high);  // "480 to 526"
std::string count_text(int count, std::string_view noun);  // "1 seed", "3 seeds"
// "97.21 +- 0.15", values times `scale`, `plus_minus` between the two; by default three digits.
std::string sample_text(const Sample& sample, double scale, int decimals,
                        std::string_view plus_minus);
std::string sample_text(const Sample& sample, std::string_view plus_minus);

}  // namespace syncopate::bench
