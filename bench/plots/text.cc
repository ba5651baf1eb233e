#include "bench/plots/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace syncopate::bench {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

// Returns the number of decimals that leaves three significant digits of a number.
int decimals_for(double value) {
  const double size = std::abs(value);
  if (size >= 99.95 || size == 0.0) return 0;
  if (size >= 9.995) return 1;
  if (size >= 0.9995) return 2;
  return std::min(6, 2 - static_cast<int>(std::floor(std::log10(size))));
}

// Returns the position at which to break a text that is wider than `width`: after the last blank
// that fits, else after punctuation, else inside a word.
std::size_t break_in(std::string_view text, std::size_t width) {
  std::size_t end = 0;
  for (std::size_t kept = 0; end < text.size(); ++end) {
    const bool begins_character = (static_cast<unsigned char>(text[end]) & 0xC0U) != 0x80U;
    if (begins_character && ++kept > width) break;
  }
  for (const char* marks : {" ", ":,+/{", "-"}) {
    const std::size_t at = text.substr(0, end).find_last_of(marks);
    if (at != std::string_view::npos && 2 * (at + 1) > end) return at + 1;
  }
  return end;
}

}  // namespace

std::string plain_text(std::string_view text) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F, encoded as C2 80 to C2 9F, are control characters too.
    const bool begins_control =
        c == 0xC2U && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0U;
    if (begins_control) ++i;
    const bool is_blank = c == '\n' || c == '\r' || c == '\t';
    const bool is_control = begins_control || c < 0x20U || c == 0x7FU;
    safe += is_blank ? ' ' : is_control ? '?' : text[i];
  }
  return safe;
}

std::string html_text(std::string_view text) {
  std::string escaped;
  for (const char c : plain_text(text)) {
    const std::string_view entity = c == '<'    ? "&lt;"
                                    : c == '>'  ? "&gt;"
                                    : c == '&'  ? "&amp;"
                                    : c == '"'  ? "&quot;"
                                    : c == '\'' ? "&#39;"
                                                : "";
    if (entity.empty()) {
      escaped += c;
    } else {
      escaped += entity;
    }
  }
  return escaped;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !continues_character(c); }));
}

std::string shortened(std::string_view text, std::size_t most) {
  if (width_of(text) <= most) return std::string(text);
  std::size_t end = 0;
  for (std::size_t kept = 0; end < text.size(); ++end) {
    if (!continues_character(text[end]) && ++kept == most) break;
  }
  return std::string(text.substr(0, end)) + "\u2026";
}

std::string decimal_text(double value, int decimals) {
  if (!std::isfinite(value)) return "-";
  std::string text = fmt::format("{:.{}f}", std::abs(value), decimals);
  const std::size_t point = std::min(text.find('.'), text.size());
  for (std::size_t i = point; i > 3; i -= 3) text.insert(i - 3, 1, ',');
  const bool is_zero = text.find_first_of("123456789") == std::string::npos;
  return value < 0.0 && !is_zero ? "-" + text : text;
}

std::string without_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string exact_text(double value) { return fmt::format("{:.7g}", value); }

std::string short_text(double value) { return decimal_text(value, decimals_for(value)); }

std::string seconds_text(double seconds) { return short_text(seconds) + " s"; }

std::string percent_text(double fraction) {
  if (!std::isfinite(fraction)) return "-";
  return without_zeros(decimal_text(100.0 * fraction, 2)) + " %";
}

std::string points_text(double fraction) {
  return decimal_text(100.0 * fraction, std::abs(fraction) < 0.1 ? 2 : 1);
}

std::string factor_text(double factor) {
  return decimal_text(factor, factor < 1.995 ? 2 : factor < 9.95 ? 1 : 0) + "x";
}

std::string count_text(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string capitalised(std::string text) {
  if (!text.empty()) {
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  }
  return text;
}

std::string listed(const std::vector<std::string>& words, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? fmt::format(" {} ", last) : ", ";
    text += words[i];
  }
  return text;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> pieces;
  while (width_of(text) > width) {
    const std::size_t end = break_in(text, width);
    const std::string_view piece = text.substr(0, end);
    pieces.emplace_back(piece.substr(0, piece.find_last_not_of(' ') + 1));
    text.remove_prefix(end);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  pieces.emplace_back(text);
  return pieces;
}

}  // namespace syncopate::bench
