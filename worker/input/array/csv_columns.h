// Which columns of a table are inputs of a network and which are targets. Training chooses them by
// the first line and by --data; a checkpoint keeps the choice, and prediction follows it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

struct CsvOptions;

// The first line of a file that has text.
struct FirstCsvLine {
  const std::vector<std::string_view>& fields;
  std::int64_t number = 1;  // in the file, from 1 on
  const std::string& path;  // of the file, for messages
  bool end_in_cr = false;   // the lines of the file
};

struct CsvColumns {
  std::vector<std::string> header;    // the names of all columns; empty: the file has no header
  std::size_t count = 0;              // of all columns
  std::vector<std::size_t> features;  // numbers of columns, from 0 on, in the order of the input
  std::vector<std::size_t> targets;   // or the column of labels
  std::int64_t header_line = 0;       // its number in the file at hand; 0: that has no header
  bool end_in_cr = false;             // the lines of the file at hand

  // Returns "field 3 (width)", or "field 3" without a header.
  std::string text(std::size_t column) const;
};

// Chooses the columns of a table to train on. notes: gets what the user should know of the choice.
// Throws FileError: too few columns; UsageError: columns that the table lacks, a header that leaves
// the choice open, and a line that may be a header of numbers or a sample.
CsvColumns choose_csv_columns(const FirstCsvLine& line, const CsvOptions& options,
                              std::vector<std::string>& notes);

// Whether the name of a column says that it has labels or targets, such as "Class" or "y".
bool means_label(std::string_view column_name);

// Refuses a line that may be a header of numbers or a sample. what_it_does: why the line may be a
// header, "counts the columns". names: the column names of the table that a network was trained on;
// may be empty. Throws UsageError.
[[noreturn]] void refuse_first_line(const FirstCsvLine& line, std::string_view what_it_does,
                                    const std::vector<std::string>& names);

// Returns the columns of a table that a network predicts from. In a table with a header they are
// found by the names in `trained`. Without a header, a table with as many columns as in training
// has them at the same places, and in a table without targets all columns are features. A line with
// numbers among the features is a header only if it has the trained names. Throws UsageError if
// there are no such columns, and for a line that may be a header of numbers or a sample.
CsvColumns find_csv_columns(const FirstCsvLine& line, const CsvColumns& trained);

// Returns the header that a table of `count` columns may have for a network trained on these; empty
// without a header in training.
std::vector<std::string> header_for(const CsvColumns& trained, std::size_t count);

// Converts columns to JSON text for a checkpoint, and back. Parsing throws FileError for text in
// another form.
std::string to_text(const CsvColumns& columns);
CsvColumns parse_csv_columns(std::string_view text);

}  // namespace syncopate
