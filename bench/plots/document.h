// Makes the HTML of report pages: the document with its style sheet, lists of facts, scrolling
// tables and plots. Also makes answer pages, which show the answer on the first screen and details
// below. A page has no script, loads nothing, and is well-formed XML.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/plots/picture.h"

namespace syncopate::bench {

// The two lines of a column's head: a name, and a unit or a reference.
struct TableHead {
  std::string name;
  std::string unit{};
  bool is_detail = false;  // true: narrow pages omit the column
};

struct TableRow {
  std::string name;
  std::vector<std::string> cells{};  // cells of the columns after the name
  std::vector<std::string> notes{};  // remarks on this row, such as a failure
};

// A table for a page or a terminal. Texts are not escaped; the code that prints the table escapes
// them.
struct Table {
  std::vector<TableHead> heads;  // heads of all columns, the names first
  std::vector<TableRow> rows{};
};

struct NamedPlot {
  std::string name;  // the name of the plot's file, without the extension
  Picture picture;
  std::string caption{};  // may be empty
};

// Returns a whole page. title: plain text, also used as the heading. body: the HTML below the
// heading.
std::string html_document(std::string_view title, std::string_view body);
// Returns the HTML of the plots, which stand side by side if the page is wide enough; "" if there
// are no plots.
std::string plots_html(const std::vector<NamedPlot>& plots);
// Returns one entry of a <dl>. name: plain text; html: HTML.
std::string fact_html(std::string_view name, std::string_view html);
// Returns a paragraph in small type that keeps the line ends of the plain text `text`; "" if `text`
// is empty.
std::string note_html(std::string_view text);
// Returns the HTML of a table. The notes of a row follow below the row.
std::string html_of(const Table& table);

// A section of the page that is collapsed until a reader opens it.
struct Fold {
  std::string title;
  std::string extent;  // how much the section contains, such as "12 of them"
  std::string html;    // empty: the section is omitted
};

struct AnswerPage {
  std::string title;  // plain text, like the next three texts
  std::string setting;
  std::string verdict;
  std::string accuracy;
  bool has_answer = true;  // false: the verdict does not name a strategy to use
  std::string figure;      // HTML, like `below`
  std::string below;
  std::vector<Fold> folds;
};

// Returns the HTML of an answer page, which is also well-formed XML.
std::string answer_page(const AnswerPage& page);

// Returns the text as HTML that has no line break between a number and its unit, or inside
// parentheses, such as an interval.
std::string joined_html(const std::string& text);

}  // namespace syncopate::bench
