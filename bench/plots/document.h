// The skeleton of a report page: the document with its style sheet, a list of facts, a table that
// scrolls by itself, plots. A page has no script and loads nothing, and is well-formed XML.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/plots/picture.h"

namespace syncopate::bench {

// The head of a column has two lines: a name, and a unit or a reference.
struct TableHead {
  std::string name;
  std::string unit;
  bool is_detail = false;  // a narrow page leaves the column out
};
// Returns the attribute that a <th> or <td> of the column needs, with a blank before it; "" if
// none.
std::string_view class_of(const TableHead& head);

struct TableRow {
  std::string name;
  std::vector<std::string> cells;  // cells of the columns after the name
  std::vector<std::string> notes;  // what to say about this row, such as a failure
};

// A table of the page. Text is unescaped; the code that prints the table escapes it.
struct Table {
  std::vector<TableHead> heads;  // heads of all columns, first that of the names
  std::vector<TableRow> rows;
};

struct NamedPlot {
  std::string name;  // of its file, without the extension
  std::string title;
  Picture picture;
  std::string caption{};  // may be empty
};

// Returns a whole page. title: plain text; body: HTML below the heading.
std::string html_document(std::string_view title, std::string_view body);
// Returns the plots side by side as far as the page has room; "" for none.
std::string plots_html(const std::vector<NamedPlot>& plots);
// Returns one entry of a <dl>. name: plain text; html: HTML.
std::string fact_html(std::string_view name, std::string_view html);
// Returns a paragraph in small type that keeps its line ends; "" for no text. text: plain text.
std::string note_html(std::string_view text);
// Returns a table of the page. rows: its <tr> elements.
std::string table_html(const std::vector<TableHead>& heads, std::string_view rows);

// Writes the page's file completely or leaves the old one. Throws FileError naming the file.
void write_whole(const std::filesystem::path& path, std::string_view text);

}  // namespace syncopate::bench
