// Prints tables and paragraphs of a report for a terminal of kTerminalWidth characters.
#pragma once

#include <iosfwd>
#include <string_view>

#include "bench/plots/document.h"

namespace syncopate::bench {

// The number of blanks between two columns of a table.
inline constexpr std::size_t kColumnGap = 2;

// Prints the table in aligned columns. A long name is broken into several lines, and the notes of a
// row follow below the row.
void print_columns(std::ostream& out, const Table& table);

// Prints text in lines of at most 80 characters. The first line begins with `head`; the others are
// indented by the width of `head`. Prints nothing if `text` is empty.
void print_paragraph(std::ostream& out, std::string_view text, std::string_view head = "");

}  // namespace syncopate::bench
