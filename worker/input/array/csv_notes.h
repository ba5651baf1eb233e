// Checks all values of a table for signs that its columns or its header were misunderstood. Used by
// the reader of tables.
#pragma once

#include <string>
#include <vector>

#include "worker/input/array/csv_columns.h"

namespace syncopate {

struct CsvOptions;
struct CsvTable;

// Whether the first sample of a table without a header may be a header of numbers. This is so if
// the table has more than 10 samples and two of four conditions hold. (1) The features of the first
// sample rise or fall from column to column, and fewer than one in ten other samples do so. (2) The
// features of the first sample rise or fall, and no other sample does so among more than 100. (3)
// No other sample has the label of the first sample, and labels of a single sample are rare. (4) At
// least half of the features of the first sample lie outside the range of the other samples.
bool first_sample_may_be_header(const CsvTable& table);

// Returns notes for the user about suspicious columns of a table. A feature may number or name the
// rows. The features and the label may be a one-hot code, in which exactly one of them is 1 in
// every sample. A feature may look like the labels: it is the only one that has few whole numbers,
// all from 0 or 1 to the largest, each in ten samples on average. It is noted if neither the header
// nor the user says which column has the labels. path: the path of the table's file.
std::vector<std::string> notes_on_columns(const CsvTable& table, const std::string& path,
                                          const CsvOptions& options);

}  // namespace syncopate
