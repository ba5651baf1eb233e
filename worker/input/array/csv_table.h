// Reads a text file with one sample per line, as numbers separated by commas. The targets are a
// column of class labels, or one or more columns of numbers. Used by csv:FILE and by predictions
// from such files.
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
  CsvColumns layout{};               // the columns of features and targets
  std::vector<std::string> notes{};  // notes for the user, for the log
};

struct CsvOptions {
  // The column of labels, as its name in the header or its number from 1; empty: the last column.
  std::string label_column = {};
  // The columns of the targets if the targets are numbers, given by name or by number from 1; the
  // target vector has their values in this order. Empty: the targets are classes.
  std::vector<std::string> target_columns = {};
  // Called from time to time with the number of unpacked bytes read so far; may be empty.
  std::function<void(std::int64_t bytes)> on_progress = {};
  // The file or folder of --data csv:, for messages; empty: the path of the file that is read.
  std::string data = {};
};

// Reads a table. The first line with text is a header if none of its fields is a number. It is also
// a header if it has words, and numbers that are the indices of their columns, such as
// "0,1,2,label". Columns without a name in the header are left out. Lines end with LF, CR LF or CR;
// lines without text are skipped; a field may be in double quotes. A label is a whole number from
// 0. path: the path of the file, for messages. Throws FileError naming path and line for a missing
// field, a field that is not a finite number, a label out of range, and a line with more or fewer
// fields than the first line. Also throws FileError if there are no samples. Throws UsageError if
// `options` name a column that the file does not have, or if no column is left for features. Also
// throws UsageError if it is unclear whether the first line is a header, or which column has the
// labels.
CsvTable read_csv(ByteStream& stream, const std::string& path, const CsvOptions& options);

// Reads the columns of a table from which a network predicts, see find_csv_columns(). Other columns
// may have any content. The returned table has no targets, so its number of samples follows from
// its features. Throws what read_csv() throws.
CsvTable read_csv_features(ByteStream& stream, const std::string& path, const CsvColumns& trained);

// Whether the first sample of a table without a header may be a header of numbers. This is so if
// the table has more than 10 samples and two of four conditions hold. (1) The features of the first
// sample rise or fall from column to column, and the features of fewer than one in ten samples do
// the same. (2) The features of the first sample rise or fall, the table has more than 100 samples,
// and the features of no other sample do the same. (3) No other sample has the label of the first
// sample, and few labels occur only once. (4) At least half of the features of the first sample lie
// outside the range of the other samples.
bool first_sample_may_be_header(const CsvTable& table);

// Returns notes for the user about suspicious columns of a table. There are three kinds of notes.
// (1) A feature numbers or names the rows. (2) The features and the label together are a one-hot
// code: in every sample exactly one of these columns is 1. (3) A feature may be the labels. Note
// (3) is made if neither the header nor the user says which column has the labels, and exactly one
// feature looks like classes: it has all whole numbers from 0 or 1 to the largest, and each number
// occurs in ten samples on average. path: the path of the table's file.
std::vector<std::string> notes_on_columns(const CsvTable& table, const std::string& path,
                                          const CsvOptions& options);

}  // namespace syncopate
