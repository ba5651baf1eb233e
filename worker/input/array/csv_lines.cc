#include "worker/input/array/csv_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/base/errors.h"
#include "models/base/lower_case.h"
#include "models/base/parse_number.h"

namespace syncopate {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kLongestLine = std::size_t{64} << 20;    // bytes; bounds memory for bad files
constexpr std::size_t kLongestQuoted = std::size_t{64} << 10;  // bytes of a line with quoted ends
constexpr std::size_t kLinesChunk = std::size_t{1} << 18;      // bytes that are read at a time
constexpr std::int64_t kProgressBytes = std::int64_t{16} << 20;

bool is_blank(char letter) { return letter == ' ' || letter == '\t'; }

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// Returns the place of the quote that ends a quoted field, from `at` on, which is behind the quote
// that starts it; npos if there is none.
std::size_t closing_quote(std::string_view line, std::size_t at) {
  for (;;) {
    at = line.find('"', at);
    if (at == std::string_view::npos || !line.substr(at + 1).starts_with('"')) return at;
    at += 2;
  }
}

// Whether a quoted field starts in a line and does not end there.
bool has_open_quote(std::string_view line) {
  if (line.find('"') == std::string_view::npos) return false;
  for (std::size_t at = 0; at < line.size();) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (line.substr(at).starts_with('"')) {
      at = closing_quote(line, at + 1);
      if (at == std::string_view::npos) return true;
    }
    at = std::min(line.find(',', at), line.size() - 1) + 1;
  }
  return false;
}

}  // namespace

CsvLines::CsvLines(ByteStream& stream, std::string path,
                   std::function<void(std::int64_t bytes)> on_progress)
    : stream_(stream), path_(std::move(path)), on_progress_(std::move(on_progress)) {}

std::optional<std::string_view> CsvLines::next() {
  std::size_t end = find_end(begin_);
  if (begin_ == text_.size()) return std::nullopt;
  number_ = ++num_lines_;
  std::string_view line = std::string_view(text_).substr(begin_, end - begin_);
  while (end != std::string::npos && has_open_quote(line) && line.size() < kLongestQuoted) {
    end = find_end(end + 1);
    line = std::string_view(text_).substr(begin_, end - begin_);
    ++num_lines_;
  }
  begin_ = end == std::string::npos ? text_.size() : end + 1;
  while (line.ends_with('\r')) line.remove_suffix(1);
  require_one_kind_of_ends(line);
  // A byte order mark, which spreadsheets write.
  if (number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  return line;
}

std::size_t CsvLines::find_end(std::size_t from) {
  from -= begin_;
  for (;;) {
    const std::size_t end = text_.find(end_of_line_, begin_ + from);
    if (end != std::string::npos || at_end_) return end;
    from = text_.size() - begin_;
    refill();
  }
}

void CsvLines::refill() {
  text_.erase(0, begin_);
  begin_ = 0;
  if (text_.size() > kLongestLine) {
    throw FileError(fmt::format("{}, line {}: longer than 64 MB; expected lines of numbers", path_,
                                num_lines_ + 1));
  }
  const std::size_t old_size = text_.size();
  text_.resize(old_size + kLinesChunk);
  const std::size_t got =
      stream_.read({reinterpret_cast<std::uint8_t*>(text_.data()) + old_size, kLinesChunk});
  text_.resize(old_size + got);
  at_end_ = got < kLinesChunk;
  if (bytes_ == 0) examine_start();
  bytes_ += static_cast<std::int64_t>(got);
  if (on_progress_ && bytes_ - reported_ >= kProgressBytes) on_progress_(reported_ = bytes_);
}

void CsvLines::require_one_kind_of_ends(std::string_view line) const {
  if (find_outside_quotes(line, end_in_cr() ? "\n"sv : "\r"sv) == std::string_view::npos) return;
  throw FileError(fmt::format(
      "{}, line {}: some lines end with CR and others with LF; expected one kind of ends; give "
      "all of them LF: {} > NEW.csv",
      path_, number_, filter_command("cat", path_, true)));
}

void CsvLines::examine_start() {
  // With a byte order mark, or with a NUL in the first number or comma.
  const std::string_view start = std::string_view(text_).substr(0, 512);
  const std::string_view encoding =
      start.starts_with("\xFF\xFE\0\0"sv) || start.starts_with("\0\0\xFE\xFF"sv) ? "UTF-32"
      : start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF")           ? "UTF-16"
      : start.size() > 1 && start[1] == '\0' && start[0] != '\0'                 ? "UTF-16LE"
      : start.size() > 1 && start[0] == '\0' && start[1] != '\0'                 ? "UTF-16BE"
                                                                                 : "";
  if (!encoding.empty()) {
    throw FileError(fmt::format(
        "{}: expected text in UTF-8 or ASCII, found {}; convert it: {} > NEW.csv", path_, encoding,
        filter_command(fmt::format("iconv -f {} -t UTF-8", encoding), path_)));
  }
  if (start.find('\0') != std::string_view::npos || start.starts_with("PK\3\4")) {
    throw FileError(
        fmt::format("{}: expected lines of numbers separated by commas, found bytes that are no "
                    "text; save the table as CSV",
                    path_));
  }
  // The last byte is left out: the LF of a CR LF may follow it.
  const std::string_view most =
      std::string_view(text_).substr(0, std::max<std::size_t>(text_.size(), 1) - 1);
  if (text_.find('\n') == std::string::npos && most.find('\r') != std::string_view::npos) {
    end_of_line_ = '\r';
  }
}

const std::vector<std::string_view>& CsvSplitter::split(std::string_view line,
                                                        std::int64_t number) {
  fields_.clear();
  unquoted_.clear();
  const auto error = [&](std::string_view reason) {
    return FileError(
        fmt::format("{}, line {}: field {} {}", path_, number, fields_.size() + 1, reason));
  };
  for (std::size_t at = 0; at <= line.size();) {
    std::size_t end = std::min(line.find(',', at), line.size());
    std::string_view field = without_blanks(line.substr(at, end - at));
    if (field.starts_with('"')) {
      const std::size_t open = line.find('"', at);
      const std::size_t close = closing_quote(line, open + 1);
      if (close == std::string_view::npos) throw error("starts with a quote and has no second one");
      end = std::min(line.find(',', close), line.size());
      if (!without_blanks(line.substr(close + 1, end - close - 1)).empty()) {
        throw error("goes on after its second quote");
      }
      field = without_blanks(line.substr(open + 1, close - open - 1));
      if (field.find('"') != std::string_view::npos) {
        std::string& text = unquoted_.emplace_back(field);
        for (std::size_t quote = 0; (quote = text.find("\"\"", quote)) != std::string::npos;
             ++quote) {
          text.erase(quote, 1);
        }
        field = text;
      }
    }
    fields_.push_back(field);
    at = end + 1;
  }
  return fields_;
}

std::size_t find_outside_quotes(std::string_view line, std::string_view letters) {
  bool in_quotes = false;
  std::size_t at = line.find_first_of(letters);
  if (at == std::string_view::npos) return at;
  for (std::size_t quote = 0; at != std::string_view::npos;
       at = line.find_first_of(letters, at + 1)) {
    for (; quote < at; ++quote) in_quotes ^= line[quote] == '"';
    if (!in_quotes) break;
  }
  return at;
}

std::optional<double> parse_csv_number(std::string_view field) {
  if (field.size() == 4 && lower_case(field) == "true") return 1.0;
  if (field.size() == 5 && lower_case(field) == "false") return 0.0;
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);
  const auto value = parse_number<double>(field);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

std::string filter_command(std::string_view filter, const std::string& path, bool end_in_cr) {
  std::string quoted = "'";
  for (const char letter : path) quoted += letter == '\'' ? "'\\''" : std::string(1, letter);
  quoted += "'";
  const std::string unpack = path.ends_with(".gz")    ? "zcat " + quoted
                             : path.ends_with(".zst") ? "zstdcat " + quoted
                                                      : "";
  if (unpack.empty() && !end_in_cr) return fmt::format("{} {}", filter, quoted);
  const std::string replace = !end_in_cr       ? ""
                              : unpack.empty() ? "tr '\\r' '\\n' < " + quoted
                                               : " | tr '\\r' '\\n'";
  return unpack + replace + (filter == "cat" ? "" : fmt::format(" | {}", filter));
}

bool is_missing_value(std::string_view field) {
  constexpr std::array<std::string_view, 12> kMissing = {"",  "na",  "n/a",  "nan", "null", "none",
                                                         "?", "inf", "-inf", "-",   ".",    "nil"};
  return std::ranges::find(kMissing, lower_case(field)) != kMissing.end();
}

std::string shown_csv_field(std::string_view field) {
  std::string text(field.substr(0, 40));
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ' || letter == 0x7F) letter = '?';
  }
  return text;
}

}  // namespace syncopate
