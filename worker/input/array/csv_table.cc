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

constexpr std::string_view kWanted = "expected numbers separated by commas, one of them the label";
constexpr std::string_view kOtherSeparators = ";\t|";

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

  // end_in_cr: the lines of the file.
  void add_line(std::string_view line, std::int64_t number, bool end_in_cr) {
    if (line.find_first_not_of(" \t\r\n") == std::string_view::npos) return;
    line_number_ = number;
    const bool is_first = columns_.count == 0;
    if (is_first) {
      columns_.end_in_cr = end_in_cr;
      const bool has_comma = find_outside_quotes(line, ",") != std::string_view::npos;
      const std::size_t other = find_outside_quotes(line, kOtherSeparators);
      if (!has_comma && other != std::string_view::npos) throw error(no_comma_but(line[other]));
    }
    const FieldList& fields = splitter_.split(line, number);
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
    columns_ = choose_({fields, line_number_, path_, columns_.end_in_cr});
    table_.num_features = static_cast<std::int64_t>(columns_.features.size());
    if (reading_ == Reading::kNumbers) {
      table_.targets.numbers_per_sample = static_cast<std::int64_t>(columns_.targets.size());
    }
  }

  std::string filter(std::string_view command) const {
    return filter_command(command, path_, columns_.end_in_cr);
  }

  // Returns the command for a file with another separator. Numbers between semicolons have decimal
  // commas in many countries.
  std::string with_commas(char separator) const {
    return "convert the file: " +
           filter(separator == ';'    ? "sed 's/,/./g; s/;/,/g'"
                  : separator == '\t' ? "sed 's/\\t/,/g'"
                  : separator == ' '  ? "sed 's/^ *//; s/ *$//; s/  */,/g'"
                                      : fmt::format("sed 's/{}/,/g'", separator)) +
           " > NEW.csv";
  }

  std::string no_comma_but(char separator) const {
    return fmt::format("no comma, but {}; {}; {}",
                       separator == '\t'  ? "'a tab'"
                       : separator == ' ' ? "blanks"
                                          : fmt::format("'{}'", separator),
                       kWanted, with_commas(separator));
  }

  // Throws FileError unless a line of one field may be meant so.
  void require_commas(std::string_view line) const {
    if (line.starts_with('#')) {
      throw error(
          fmt::format("a comment; {}; remove it: {} > NEW.csv", kWanted, filter("sed '/^#/d'")));
    }
    if (line.find(' ') != std::string_view::npos) throw error(no_comma_but(' '));
    if (reading_ != Reading::kPrediction) throw error(fmt::format("no comma; {}", kWanted));
  }

  // Returns the start of an awk program for the lines below the header. number: "NR" or "FNR".
  std::string awk_start(std::string_view number) const {
    return columns_.header_line > 0 ? fmt::format("{}>{}&&NF>1", number, columns_.header_line)
                                    : "NF>1";
  }

  // Returns the command that numbers the words of a column.
  std::string numbering(std::size_t column) const {
    constexpr std::string_view kProgram =
        "awk -F, -v OFS=, '{0}{{if(!(${1} in n))n[${1}]=k++;${1}=n[${1}]}}";
    if (data_ == path_) {
      return filter(fmt::format(kProgram, awk_start("NR"), column + 1) + "1'") + " > NEW.csv";
    }
    // The files of a folder have the same numbers.
    return filter_command(
               fmt::format(kProgram, awk_start("FNR"), column + 1) + "{print>(FILENAME\".new\")}'",
               data_) +
           "/*.csv, which writes FILE.csv.new";
  }

  // Returns what to do about a field that is no number. A comma in a field confuses the tools.
  std::string cure(const FieldList& fields, std::size_t column, bool is_first) const {
    const std::string_view field = fields[column];
    const std::size_t other = field.find_first_of(kOtherSeparators);
    if (is_first && other != std::string_view::npos) return "; " + with_commas(field[other]);
    const bool is_word = !field.empty() && std::isalpha(static_cast<unsigned char>(field[0])) != 0;
    std::string text;
    // Words in the first line may belong to a header with numbers.
    if (is_first && is_word && !is_missing_value(field)) {
      text = fmt::format("; if the line is a header, remove it: {} > NEW.csv",
                         filter(fmt::format("sed {}d", line_number_)));
    }
    if (std::ranges::any_of(fields, [](std::string_view each) {
          return each.find_first_of(",\"\n") != std::string_view::npos;
        })) {
      return text;
    }
    if (is_missing_value(field)) {
      return fmt::format(
          "; remove such lines: {} > NEW.csv",
          filter(field.empty() ? fmt::format("awk -F, '${}~/[^ \"\\r]/'", column + 1)
                               : fmt::format("awk -F, '${}!=\"{}\"'", column + 1, field)));
    }
    if (reading_ == Reading::kPrediction) return text;
    const bool is_label = std::ranges::find(columns_.targets, column) != columns_.targets.end();
    if (!is_label) {
      text += fmt::format("; leave the column out: {} > NEW.csv",
                          filter(fmt::format("cut -d, -f{} --complement", column + 1)));
    }
    if (is_word && (!is_label || reading_ == Reading::kClasses)) {
      text += (is_label ? "; number the words: " : ", or number its words: ") + numbering(column);
    }
    return text;
  }

  double value_in(const FieldList& fields, std::size_t column, bool is_first,
                  std::string_view expected) const {
    const std::string_view field = fields[column];
    if (const std::optional<double> value = parse_csv_number(field)) return *value;
    throw error(
        fmt::format("{} {}; expected {}{}", columns_.text(column),
                    field.empty() ? "is empty" : fmt::format("is '{}'", shown_csv_field(field)),
                    expected, cure(fields, column, is_first)));
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
                 fmt::format("the number of a class, from 0 on, in this column or in another: "
                             "csv:{}:COLUMN",
                             data_));
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
    parser.add_line(*line, lines.number(), lines.end_in_cr());
  }
  return std::move(parser).finish();
}

// Refuses the first sample of a table if it may be a header of numbers. line: its number. names:
// those that a table to predict from may have.
void require_sample_first(const CsvTable& table, std::int64_t line, const std::string& path,
                          const std::vector<std::string>& names) {
  if (!first_sample_may_be_header(table)) return;
  const CsvColumns& layout = table.layout;
  std::vector<std::string> texts(layout.count);
  const auto put = [&](const std::vector<std::size_t>& columns, const auto& values) {
    for (std::size_t i = 0; i < columns.size() && !values.empty(); ++i) {
      texts[columns[i]] = fmt::format("{}", values[i]);
    }
  };
  put(layout.features, table.features);
  put(layout.targets, table.targets.labels);
  put(layout.targets, table.targets.numbers);
  const FieldList fields(texts.begin(), texts.end());
  refuse_first_line({fields, line, path, layout.end_in_cr}, "differs from all lines below", names);
}

}  // namespace

CsvTable read_csv(ByteStream& stream, const std::string& path, const CsvOptions& options) {
  std::vector<std::string> notes;
  CsvLines lines(stream, path, options.on_progress);
  const Reading reading = options.target_columns.empty() ? Reading::kClasses : Reading::kNumbers;
  std::int64_t first_line = 0;
  CsvParser parser(path, options.data, reading, [&](const FirstCsvLine& line) {
    first_line = line.number;
    return choose_csv_columns(line, options, notes);
  });
  CsvTable table = parse_lines(lines, parser);
  require_sample_first(table, first_line, path, {});
  table.notes = std::move(notes);
  for (std::string& note : notes_on_columns(table, path, options)) {
    table.notes.push_back(std::move(note));
  }
  return table;
}

CsvTable read_csv_features(ByteStream& stream, const std::string& path, const CsvColumns& trained) {
  CsvLines lines(stream, path, {});
  std::int64_t first_line = 0;
  CsvParser parser(path, "", Reading::kPrediction, [&](const FirstCsvLine& line) {
    first_line = line.number;
    return find_csv_columns(line, trained);
  });
  CsvTable table = parse_lines(lines, parser);
  require_sample_first(table, first_line, path, header_for(trained, table.layout.count));
  return table;
}

}  // namespace syncopate
