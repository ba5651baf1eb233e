// Which columns of a table are inputs of a network and which are targets. Training chooses them by
// the first line and by --data; a checkpoint keeps the choice, and prediction follows it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

struct CsvOptions;

struct CsvColumns {
  std::vector<std::string> header;    // the names of all columns; empty: the file has no header
  std::size_t count = 0;              // of all columns
  std::vector<std::size_t> features;  // numbers of columns, from 0 on, in the order of the input
  std::vector<std::size_t> targets;   // or the column of labels
  bool first_line_is_header = false;  // of the file at hand

  // Returns "field 3 (width)", or "field 3" without a header.
  std::string text(std::size_t column) const;
};

// Chooses the columns of a table to train on. first_line: its fields. path: of the file, for
// messages. notes: gets what the user should know of the choice. Throws FileError: too few columns;
// UsageError: columns that the table lacks, and a header that leaves the choice open.
CsvColumns choose_csv_columns(const std::vector<std::string_view>& first_line,
                              const std::string& path, const CsvOptions& options,
                              std::vector<std::string>& notes);

// Whether the name of a column says that it has labels or targets, such as "Class" or "y".
bool means_label(std::string_view column_name);

// Returns the columns of a table that a network predicts from: those of these names, in a table
// with a header; else those at the places that they had in training, in a table of as many columns,
// or all columns of a table without targets. Throws UsageError if there are no such columns.
CsvColumns find_csv_columns(const std::vector<std::string_view>& first_line,
                            const std::string& path, const CsvColumns& trained);

// Converts columns to JSON text for a checkpoint, and back. Parsing throws FileError for text in
// another form.
std::string to_text(const CsvColumns& columns);
CsvColumns parse_csv_columns(std::string_view text);

}  // namespace syncopate
