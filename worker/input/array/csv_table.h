// A text file of numbers separated by commas, one sample a line, with a column of class labels or
// columns of numbers as targets. Used by csv:FILE.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "worker/input/array/targets.h"
#include "worker/input/byte_stream.h"

namespace syncopate {

struct CsvTable {
  std::vector<std::string> columns;  // names of the features; empty without a header
  std::int64_t num_features = 0;
  std::vector<float> features;  // [samples, num_features]
  Targets targets;
};

struct CsvOptions {
  // The column of labels: its name in the header, or its number from 1 on; empty: the last column.
  std::string label_column = {};
  // The columns of targets that are numbers, named in the same way, in the order of the target;
  // empty: the targets are classes.
  std::vector<std::string> target_columns = {};
  // Called now and then with the unpacked bytes that were read; may be empty.
  std::function<void(std::int64_t bytes)> on_progress = {};
};

// Reads a table. The first line with text is a header if none of its fields is a number. Lines
// end with LF or CR LF; lines without text are skipped; a field may be in double quotes. A label is
// a whole number from 0 on. path: of the file, for messages. Throws FileError naming path and line:
// a field that is missing or no finite number, a line with more or fewer fields than the first, a
// label out of range, no samples; UsageError for a column that the file lacks, and for targets that
// leave no column of features.
CsvTable read_csv(ByteStream& stream, const std::string& path, const CsvOptions& options);

}  // namespace syncopate
