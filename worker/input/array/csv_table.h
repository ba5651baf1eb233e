// A text file of numbers separated by commas, one sample a line, with a column of class labels or
// columns of numbers as targets. Used by csv:FILE and by predictions from such files.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/input/array/byte_stream.h"
#include "worker/input/array/csv_columns.h"
#include "worker/input/array/targets.h"

namespace syncopate {

struct CsvTable {
  std::vector<std::string> columns;  // names of the features; empty without a header
  std::int64_t num_features = 0;
  std::vector<float> features;  // [samples, num_features]
  Targets targets;
  CsvColumns layout{};               // where features and targets are in a line
  std::vector<std::string> notes{};  // what a user should know, for the log
};

struct CsvOptions {
  // The column of labels: its name in the header, or its number from 1 on; empty: the last column.
  std::string label_column = {};
  // The columns of targets that are numbers, named in the same way, in the order of the target;
  // empty: the targets are classes.
  std::vector<std::string> target_columns = {};
  // Called now and then with the unpacked bytes that were read; may be empty.
  std::function<void(std::int64_t bytes)> on_progress = {};
  // The file or folder that --data csv: names, for messages; empty: the file.
  std::string data = {};
};

// Reads a table. The first line with text is a header if none of its fields is a number, or if its
// numbers count the columns and its other fields are words. Columns without a name are left out.
// Lines end with LF, CR LF or CR; lines without text are skipped; a field may be in double quotes.
// A label is a whole number from 0 on. path: of the file, for messages. Throws FileError naming
// path and line: a field that is missing or no finite number, a line with more or fewer fields than
// the first, a label out of range, no samples; UsageError for a column that the file lacks, for
// targets that leave no column of features, and for a first line that leaves open what is a header
// or the label.
CsvTable read_csv(ByteStream& stream, const std::string& path, const CsvOptions& options);

// Reads the columns of a table that a network predicts from, as find_csv_columns() finds them;
// other columns may hold anything. The returned table has no targets, so its number of samples
// follows from its features. Throws as read_csv().
CsvTable read_csv_features(ByteStream& stream, const std::string& path, const CsvColumns& trained);

}  // namespace syncopate
