// The table of a comparison: a row per variant. The terminal and the page show the same cells.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// A column's head has two lines: what it is, and its unit or what it is measured against.
struct TableHead {
  std::string name;
  std::string unit;
};

struct TableRow {
  std::string name;
  std::vector<std::string> cells;  // of the columns behind the name
  std::vector<std::string> notes;  // what failed, what is pending
};

struct Table {
  std::vector<TableHead> heads;  // the first is the name's
  std::vector<TableRow> rows;
};

// Labels and reasons stand in it as they came: whoever shows them makes them harmless.
Table make_table(const Comparison& comparison, std::string_view plus_minus);

// Aligned columns for a terminal of 100 characters; long labels go on in the next line. Below them
// the machine.
void print_table(std::ostream& out, const Comparison& comparison);

}  // namespace syncopate::bench
