// A report page: the document with its style sheet, a list of facts, a table that scrolls by
// itself, plots; and the page of an answer, with a first screen that is understood at a glance. A
// page has no script and loads nothing, and is well-formed XML.
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

struct TableRow {
  std::string name;
  std::vector<std::string> cells;  // cells of the columns after the name
  std::vector<std::string> notes;  // what to say about this row, such as a failure
};

// A table of the page. Text is unescaped; the code that prints the table escapes it.
struct Table {
  std::vector<TableHead> heads;  // heads of all columns, the names first
  std::vector<TableRow> rows;
};

struct NamedPlot {
  std::string name;  // of its file, without the extension
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
// Returns a table of the page, with the notes of a row below it.
std::string html_of(const Table& table);

// A part of the page that is closed until a reader opens it.
struct Fold {
  std::string title;
  std::string extent;  // how much it has, such as "12 of them"
  std::string html;    // an empty fold is left out
};

struct AnswerPage {
  std::string title;  // plain text, as the next three
  std::string setting;
  std::string verdict;
  std::string accuracy;
  bool has_answer = true;  // false: the verdict names nothing to use
  std::string figure;      // HTML, as the next two
  std::string below;
  std::vector<Fold> folds;
};

// Returns the page, which is HTML and also well-formed XML.
std::string answer_page(const AnswerPage& page);

// Returns the text as HTML, with numbers joined to their units and intervals in one piece.
std::string joined_html(const std::string& text);

// Writes the page's file completely or leaves the old one. Throws FileError naming the file.
void write_whole(const std::filesystem::path& path, std::string_view text);

}  // namespace syncopate::bench
