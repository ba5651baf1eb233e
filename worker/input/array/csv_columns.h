// Chooses which columns of a table are inputs of a network and which are targets. Training chooses
// them by the first line and by --data. A checkpoint stores the choice, and prediction uses the
// stored choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace syncopate {

struct CsvOptions;

// The first line with text in a file.
struct FirstCsvLine {
  const std::vector<std::string_view>& fields;
  std::int64_t number = 1;  // number of the line in the file, from 1
  const std::string& path;  // path of the file, for messages
  bool end_in_cr = false;   // whether the lines of the file end with CR
};

struct CsvColumns {
  std::vector<std::string> header;    // the names of all columns; empty if the file has no header
  std::size_t count = 0;              // number of all columns
  std::vector<std::size_t> features;  // indices of columns, from 0, in the order of the input
  std::vector<std::size_t> targets;   // indices of the target columns, or of the column of labels
  std::int64_t header_line = 0;       // line number of the header in the current file; 0: no header
  bool end_in_cr = false;             // whether the lines of the current file end with CR

  // Returns a name of a column for messages: "field 3 (width)", or "field 3" without a header.
  std::string text(std::size_t column) const;
};

// Chooses the columns of a table to train on. Appends to `notes` what the user should know about
// the choice. Throws FileError if there are too few columns. Throws UsageError if the options name
// a column that the table does not have, or if several columns of the header may be the labels.
// Also throws UsageError if it is unclear whether the line is a header of numbers or a sample.
CsvColumns choose_csv_columns(const FirstCsvLine& line, const CsvOptions& options,
                              std::vector<std::string>& notes);

// Whether the name of a column, such as "Class" or "y", suggests that the column has labels or
// targets.
bool means_label(std::string_view column_name);

// Always throws: a UsageError which says that it is unclear whether `line` is a header of numbers
// or a sample. what_it_does: the part of the message that says why the line may be a header, such
// as "counts the columns". names: the column names of the table on which the network was trained;
// may be empty.
[[noreturn]] void refuse_first_line(const FirstCsvLine& line, std::string_view what_it_does,
                                    const std::vector<std::string>& names);

// Returns the columns of a table from which a network predicts. If the table has a header, the
// columns are found by the names in `trained`. A table without a header must have as many columns
// as the training table (the columns then have the same indices) or as many as there are features
// (all columns are then features). A first line with numbers in the feature columns is taken for a
// header only if it has the column names of the training table. Throws UsageError if the columns
// cannot be found, or if it is unclear whether the line is a header of numbers or a sample.
CsvColumns find_csv_columns(const FirstCsvLine& line, const CsvColumns& trained);

// Returns the header that a table of `count` columns should have for a network that was trained on
// `trained`; empty if the training table had no header.
std::vector<std::string> header_for(const CsvColumns& trained, std::size_t count);

// These functions convert columns to JSON text for a checkpoint, and back. Parsing throws FileError
// for text in another form.
std::string to_text(const CsvColumns& columns);
CsvColumns parse_csv_columns(std::string_view text);

}  // namespace syncopate
