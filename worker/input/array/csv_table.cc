#include "worker/input/array/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <utility>

#include "models/base/errors.h"
#include "worker/input/array/class_labels.h"
#include "worker/input/array/csv_lines.h"

namespace syncopate {
namespace {

using FieldList = std::vector<std::string_view>;

// What a table is read for.
enum class Reading : std::uint8_t { kClasses, kNumbers, kPrediction };

// Parses the lines of one file. A field that cannot be read ends the parsing with an error.
class CsvParser {
 public:
  // choose: returns the columns by the first line.
  CsvParser(const std::string& path, const std::string& data, Reading reading,
            std::function<CsvColumns(const FirstCsvLine&)> choose)
      : path_(path),
        data_(data.empty() ? path : data),
        reading_(reading),
        choose_(std::move(choose)),
        splitter_(path) {}

  void add_line(std::string_view line, std::int64_t number) {
    if (line.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
    line_number_ = number;
    const FieldList& fields = splitter_.split(line, number);
    const bool is_first = columns_.count == 0;
    if (is_first && line == "sep=,") return;  // a line for spreadsheets
    if (is_first) {
      begin_table(line, fields);
      if (columns_.header_line > 0) return;
    }
    if (fields.size() != columns_.count) {
      throw error(fmt::format("{} fields; expected {} as in the first line", fields.size(),
                              columns_.count));
    }
    for (const std::size_t i : columns_.features) {
      table_.features.push_back(number_in(fields, i, is_first, "a finite number"));
    }
    for (const std::size_t i : columns_.targets) {
      if (reading_ == Reading::kClasses) {
        add_label(fields, i, is_first);
      } else {
        table_.targets.numbers.push_back(number_in(fields, i, is_first, "a finite number"));
      }
    }
  }

  CsvTable finish() && {
    if (table_.features.empty()) {
      throw FileError(path_ + ": holds no samples; expected a line of numbers for each sample");
    }
    for (const std::size_t i : columns_.features) {
      if (!columns_.header.empty()) table_.columns.push_back(columns_.header[i]);
    }
    table_.layout = std::move(columns_);
    return std::move(table_);
  }

 private:
  FileError error(std::string_view reason) const {
    return FileError(fmt::format("{}, line {}: {}", path_, line_number_, reason));
  }

  void begin_table(std::string_view line, const FieldList& fields) {
    if (fields.size() < 2) require_commas(line);
    columns_ = choose_({fields, line_number_, path_});
    table_.num_features = static_cast<std::int64_t>(columns_.features.size());
    if (reading_ == Reading::kNumbers) {
      table_.targets.numbers_per_sample = static_cast<std::int64_t>(columns_.targets.size());
    }
  }

  // Throws FileError unless a line of one field may be meant so.
  void require_commas(std::string_view line) const {
    constexpr std::string_view kWanted =
        "expected numbers separated by commas, one of them the label";
    const std::size_t other = line.find_first_of(";\t");
    if (line.starts_with('#')) {
      throw error(fmt::format("a comment; {}; remove it: {} > NEW.csv", kWanted,
                              filter_command("sed '/^#/d'", path_)));
    }
    const bool has_blank = line.find(' ') != std::string_view::npos;
    if (other == std::string_view::npos && !has_blank) {
      if (reading_ == Reading::kPrediction) return;
      throw error(fmt::format("no comma; {}", kWanted));
    }
    // Numbers between semicolons have decimal commas in many countries.
    const auto [what, command] = other == std::string_view::npos
                                     ? std::pair("blanks", "s/^ *//; s/ *$//; s/  */,/g")
                                 : line[other] == ';' ? std::pair("';'", "s/,/./g; s/;/,/g")
                                                      : std::pair("'a tab'", "s/\\t/,/g");
    throw error(fmt::format("no comma, but {}; {}; convert the file: {} > NEW.csv", what, kWanted,
                            filter_command(fmt::format("sed '{}'", command), path_)));
  }

  double value_in(const FieldList& fields, std::size_t column, bool is_first,
                  std::string_view expected) const {
    const std::string_view field = fields[column];
    if (const std::optional<double> value = parse_csv_number(field)) return *value;
    // Words in the first line may be those of a header with numbers.
    const bool is_word =
        is_first && !field.empty() && std::isalpha(static_cast<unsigned char>(field[0])) != 0;
    throw error(fmt::format(
        "{} {}; expected {}{}", columns_.text(column),
        field.empty() ? "is empty" : fmt::format("is '{}'", shown_csv_field(field)), expected,
        is_word ? fmt::format("; if the line is a header, remove it: {} > NEW.csv",
                              filter_command(fmt::format("sed {}d", line_number_), path_))
                : ""));
  }

  float number_in(const FieldList& fields, std::size_t column, bool is_first,
                  std::string_view expected) const {
    const auto narrow = static_cast<float>(value_in(fields, column, is_first, expected));
    if (std::isfinite(narrow)) return narrow;
    throw error(fmt::format("{} is {}; expected a number that float32 can hold",
                            columns_.text(column), shown_csv_field(fields[column])));
  }

  void add_label(const FieldList& fields, std::size_t column, bool is_first) {
    const double value =
        value_in(fields, column, is_first,
                 "the number of a class, from 0 on; another column is named by csv:FILE:COLUMN");
    const double whole = std::trunc(value);
    if (whole != value || value < 0 || value > kLargestLabel) {
      throw error(fmt::format(
          "{} is the label {}; expected a whole number from 0 to {}, or numbers as targets: "
          "csv:{}:targets={}",
          columns_.text(column), shown_csv_field(fields[column]), kLargestLabel, data_,
          columns_.header.empty() ? fmt::format("{}", column + 1) : columns_.header[column]));
    }
    table_.targets.labels.push_back(static_cast<std::int32_t>(value));
  }

  const std::string& path_;
  const std::string data_;
  const Reading reading_;
  const std::function<CsvColumns(const FirstCsvLine&)> choose_;
  CsvSplitter splitter_;
  CsvColumns columns_;
  std::int64_t line_number_ = 0;
  CsvTable table_;
};

CsvTable parse_lines(CsvLines& lines, CsvParser& parser) {
  while (const std::optional<std::string_view> line = lines.next()) {
    parser.add_line(*line, lines.number());
  }
  return std::move(parser).finish();
}

}  // namespace

CsvTable read_csv(ByteStream& stream, const std::string& path, const CsvOptions& options) {
  std::vector<std::string> notes;
  CsvLines lines(stream, path, options.on_progress);
  const Reading reading = options.target_columns.empty() ? Reading::kClasses : Reading::kNumbers;
  CsvParser parser(path, options.data, reading, [&](const FirstCsvLine& line) {
    return choose_csv_columns(line, options, notes);
  });
  CsvTable table = parse_lines(lines, parser);
  table.notes = std::move(notes);
  for (std::string& note : notes_on_row_names(table, path)) table.notes.push_back(std::move(note));
  return table;
}

CsvTable read_csv_features(ByteStream& stream, const std::string& path, const CsvColumns& trained) {
  CsvLines lines(stream, path, {});
  CsvParser parser(path, "", Reading::kPrediction,
                   [&](const FirstCsvLine& line) { return find_csv_columns(line, trained); });
  return parse_lines(lines, parser);
}

}  // namespace syncopate
