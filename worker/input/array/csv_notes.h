// Notes about the choice of a table's columns that follow from all its values. Used by the reader
// of tables.
#pragma once

#include <string>
#include <vector>

#include "worker/input/array/csv_columns.h"

namespace syncopate {

struct CsvOptions;
struct CsvTable;

// Whether the first sample of a table without a header may be a header of numbers: the table has
// more than 10 samples, and two of four conditions hold. (1) The features rise or fall from each to
// the next, and fewer than one in ten other samples do so. (2) They rise or fall, and none of more
// than 100 samples does so. (3) No other sample has its label, and such labels are rare. (4) Half
// of the features or more lie outside the range of the other samples.
bool first_sample_may_be_header(const CsvTable& table);

// Returns what the user should know of the columns of a table. Features may number or name the
// rows. With a label, they may be one-hot, where exactly one of them and the label is 1 in every
// sample. One feature alone may look like classes: it has few whole numbers, all from 0 or 1 to the
// largest, each in ten samples on average. Such a feature is noted if neither the header nor the
// user says which column has the labels. path: of the table's file.
std::vector<std::string> notes_on_columns(const CsvTable& table, const std::string& path,
                                          const CsvOptions& options);

}  // namespace syncopate
