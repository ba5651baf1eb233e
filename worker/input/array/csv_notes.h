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
