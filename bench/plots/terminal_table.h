// Prints tables and paragraphs of a report for a terminal of kTerminalWidth characters.
#pragma once

#include <iosfwd>
#include <string_view>

#include "bench/plots/document.h"

namespace syncopate::bench {

// The number of blanks between two columns.
inline constexpr std::size_t kColumnGap = 2;

// Prints the table in aligned columns, with long names on several lines and the notes of a row
// below it.
void print_columns(std::ostream& out, const Table& table);

// Prints text in lines of at most 80 characters, the first after `head`, the others below it.
// Prints nothing for no text.
void print_paragraph(std::ostream& out, std::string_view text, std::string_view head = "");

}  // namespace syncopate::bench
