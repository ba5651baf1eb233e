#include "worker/input/array/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "models/base/errors.h"
#include "worker/input/array/class_labels.h"

namespace syncopate {
namespace {

constexpr std::size_t kLongestLine = std::size_t{64} << 20;  // bytes; bounds memory for bad files
constexpr std::size_t kChunk = std::size_t{1} << 18;         // bytes that are read at a time
constexpr std::int64_t kProgressBytes = std::int64_t{16} << 20;

// Returns the lines of a stream without their ends.
class LineReader {
 public:
  LineReader(ByteStream& stream, const std::string& path, const CsvOptions& options)
      : stream_(stream), path_(path), options_(options) {}

  // Returns the next line, which is valid until the next call; nothing at the end of the data.
  std::optional<std::string_view> next() {
    std::size_t end = text_.find('\n', begin_);
    while (end == std::string::npos && !at_end_) {
      const std::size_t searched = text_.size() - begin_;
      refill();
      end = text_.find('\n', begin_ + searched);
    }
    if (begin_ == text_.size()) return std::nullopt;
    std::string_view line = std::string_view(text_).substr(begin_, end - begin_);
    begin_ = end == std::string::npos ? text_.size() : end + 1;
    ++number_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    // A byte order mark, which spreadsheets write.
    if (number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
    return line;
  }

  std::int64_t number() const noexcept { return number_; }  // of the latest line, from 1 on

 private:
  void refill() {
    text_.erase(0, begin_);
    begin_ = 0;
    if (text_.size() > kLongestLine) {
      throw FileError(fmt::format("{}, line {}: longer than 64 MB; expected lines of numbers",
                                  path_, number_ + 1));
    }
    const std::size_t old_size = text_.size();
    text_.resize(old_size + kChunk);
    const std::size_t got =
        stream_.read({reinterpret_cast<std::uint8_t*>(text_.data()) + old_size, kChunk});
    text_.resize(old_size + got);
    at_end_ = got < kChunk;
    bytes_ += static_cast<std::int64_t>(got);
    if (options_.on_progress && bytes_ - reported_ >= kProgressBytes) {
      options_.on_progress(reported_ = bytes_);
    }
  }

  ByteStream& stream_;
  const std::string& path_;
  const CsvOptions& options_;
  std::string text_;  // what was read and not returned yet starts at begin_
  std::size_t begin_ = 0;
  bool at_end_ = false;
  std::int64_t number_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t reported_ = 0;
};

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Returns the number that is all of `text`; nothing if there is none. Infinity and NaN are none.
std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0.0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Parses the lines of one file. A field that cannot be read ends the parsing with an error.
class CsvParser {
 public:
  CsvParser(const std::string& path, const CsvOptions& options) : path_(path), options_(options) {}

  void add_line(std::string_view line, std::int64_t number) {
    if (without_blanks(line).empty()) return;
    line_number_ = number;
    split(line);
    if (num_columns_ == 0) {
      begin_table(line);
      if (has_header_) return;
    }
    if (fields_.size() != num_columns_) {
      throw error(
          fmt::format("{} fields; expected {} as in the first line", fields_.size(), num_columns_));
    }
    for (std::size_t i = 0; i < num_columns_; ++i) {
      const std::optional<double> value = parse_number(fields_[i]);
      if (!value) {
        throw error(fmt::format(
            "{} {}; expected {}", column_text(i),
            fields_[i].empty() ? "is empty" : fmt::format("is '{}'", fields_[i].substr(0, 40)),
            is_label(i) ? "the number of a class, from 0 on; another column is named by "
                          "csv:FILE:COLUMN"
                        : "a finite number"));
      }
      if (is_label(i)) {
        add_label(i, *value);
        continue;
      }
      const auto narrow = static_cast<float>(*value);
      if (!std::isfinite(narrow)) {
        throw error(fmt::format("{} is {}; expected a number that float32 can hold", column_text(i),
                                fields_[i].substr(0, 40)));
      }
      if (!is_target_[i]) table_.features.push_back(narrow);
      numbers_[i] = narrow;
    }
    if (!options_.target_columns.empty()) {
      for (const std::size_t i : target_columns_) table_.targets.numbers.push_back(numbers_[i]);
    }
  }

  CsvTable finish() && {
    if (table_.targets.size() == 0) {
      throw FileError(path_ + ": holds no samples; expected a line of numbers for each sample");
    }
    return std::move(table_);
  }

 private:
  FileError error(std::string_view reason) const {
    return FileError(fmt::format("{}, line {}: {}", path_, line_number_, reason));
  }

  std::string column_text(std::size_t column) const {
    return header_.empty() ? fmt::format("field {}", column + 1)
                           : fmt::format("field {} ({})", column + 1, header_[column]);
  }

  // Splits a line into fields_, without the quotes around fields.
  void split(std::string_view line) {
    fields_.clear();
    for (std::size_t at = 0; at <= line.size();) {
      std::size_t end = std::min(line.find(',', at), line.size());
      std::string_view field = without_blanks(line.substr(at, end - at));
      if (field.starts_with('"')) {
        const std::size_t open = line.find('"', at);
        const std::size_t close = line.find('"', open + 1);
        if (close == std::string_view::npos) {
          throw error(fmt::format("field {} starts with a quote and has no second one",
                                  fields_.size() + 1));
        }
        end = std::min(line.find(',', close), line.size());
        if (!without_blanks(line.substr(close + 1, end - close - 1)).empty()) {
          throw error(fmt::format("field {} goes on after its second quote", fields_.size() + 1));
        }
        field = without_blanks(line.substr(open + 1, close - open - 1));
      }
      fields_.push_back(field);
      at = end + 1;
    }
  }

  // Takes the first line with text: decides whether it is a header and which columns are targets.
  void begin_table(std::string_view line) {
    num_columns_ = fields_.size();
    if (num_columns_ < 2) {
      const std::size_t other = line.find_first_of(";\t");
      throw error(
          fmt::format("{}; expected numbers separated by commas, one of them the label",
                      other == std::string_view::npos
                          ? "no comma"
                          : fmt::format("no comma, but '{}'", line[other] == ';' ? ";" : "a tab")));
    }
    // A line with numbers and words is no header: a missing value would make one of a sample.
    has_header_ = std::none_of(fields_.begin(), fields_.end(), [](std::string_view field) {
      return parse_number(field).has_value();
    });
    if (has_header_) header_.assign(fields_.begin(), fields_.end());
    is_target_.assign(num_columns_, false);
    numbers_.resize(num_columns_);
    if (options_.target_columns.empty()) {
      target_columns_ = {find_label_column()};
    } else {
      for (const std::string& name : options_.target_columns) {
        target_columns_.push_back(find_column(name, "target"));
      }
      table_.targets.numbers_per_sample = static_cast<std::int64_t>(target_columns_.size());
    }
    for (const std::size_t column : target_columns_) {
      if (is_target_[column]) {
        throw UsageError(
            fmt::format("--data: {} is twice among the targets of {}", column_text(column), path_));
      }
      is_target_[column] = true;
    }
    table_.num_features = static_cast<std::int64_t>(num_columns_ - target_columns_.size());
    if (table_.num_features == 0) {
      throw UsageError(
          fmt::format("--data: all {} columns of {} are targets; leave out those that "
                      "the network predicts from",
                      num_columns_, path_));
    }
    for (std::size_t i = 0; i < header_.size(); ++i) {
      if (!is_target_[i]) table_.columns.push_back(header_[i]);
    }
  }

  bool is_label(std::size_t column) const {
    return options_.target_columns.empty() && is_target_[column];
  }

  std::size_t find_label_column() const {
    if (options_.label_column.empty()) {
      for (std::size_t i = 0; i + 1 < header_.size(); ++i) {
        if (header_[i] != "label" && header_[i] != "class" && header_[i] != "target") continue;
        throw UsageError(fmt::format(
            "--data csv:{0}: the labels are the last column, '{1}', and the header has '{2}', too; "
            "give csv:{0}:{2} or csv:{0}:{1}",
            path_, header_.back(), header_[i]));
      }
      return num_columns_ - 1;
    }
    return find_column(options_.label_column, "label");
  }

  // Returns the column of a name of the header or of a number from 1 on. what: "label", "target".
  std::size_t find_column(const std::string& wanted, std::string_view what) const {
    const auto named = std::find(header_.begin(), header_.end(), wanted);
    if (named != header_.end()) return static_cast<std::size_t>(named - header_.begin());
    std::size_t number = 0;
    const char* const end = wanted.data() + wanted.size();
    const auto [stop, failure] = std::from_chars(wanted.data(), end, number);
    if (failure == std::errc() && stop == end && number >= 1 && number <= num_columns_) {
      return number - 1;
    }
    std::string known;
    for (std::size_t i = 0; i < std::min<std::size_t>(header_.size(), 20); ++i) {
      known += (i == 0 ? ": " : ", ") + header_[i];
    }
    throw UsageError(fmt::format(
        "--data: {} has no {} column '{}'; expected a number from 1 to {}{}{}", path_, what, wanted,
        num_columns_, header_.empty() ? "" : " or a name of its header", known));
  }

  void add_label(std::size_t column, double value) {
    const double whole = std::trunc(value);
    if (whole != value || value < 0 || value > kLargestLabel) {
      throw error(
          fmt::format("{} is the label {}; expected a whole number from 0 to {}, or numbers as "
                      "targets: csv:FILE:targets=COLUMN",
                      column_text(column), fields_[column].substr(0, 40), kLargestLabel));
    }
    table_.targets.labels.push_back(static_cast<std::int32_t>(value));
  }

  const std::string& path_;
  const CsvOptions& options_;
  std::vector<std::string_view> fields_;  // of the current line
  std::vector<std::string> header_;
  bool has_header_ = false;
  std::size_t num_columns_ = 0;
  std::vector<std::size_t> target_columns_;  // or the column of labels
  std::vector<bool> is_target_;              // by column
  std::vector<float> numbers_;               // of the current line, by column
  std::int64_t line_number_ = 0;
  CsvTable table_;
};

}  // namespace

CsvTable read_csv(ByteStream& stream, const std::string& path, const CsvOptions& options) {
  LineReader lines(stream, path, options);
  CsvParser parser(path, options);
  while (const std::optional<std::string_view> line = lines.next()) {
    parser.add_line(*line, lines.number());
  }
  return std::move(parser).finish();
}

}  // namespace syncopate
