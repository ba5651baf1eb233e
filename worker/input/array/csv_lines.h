// The lines of a text file of fields, and the fields of a line. Used by the readers of tables.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/input/array/byte_stream.h"

namespace syncopate {

// Returns the lines of a file without their ends: LF, CR LF, or CR in a file without LF. An end
// inside a quoted field does not end the line. One thread only.
class CsvLines {
 public:
  // path: of the file, for messages. on_progress: called now and then with the unpacked bytes that
  // were read; may be empty.
  CsvLines(ByteStream& stream, std::string path,
           std::function<void(std::int64_t bytes)> on_progress);

  // Returns the next line, which is valid until the next call; nothing at the end of the data.
  // Throws FileError: a line without end, ends of both kinds, UTF-16, a file that is no text.
  std::optional<std::string_view> next();
  // Whether lines end with CR, which shell commands do not take for an end.
  bool end_in_cr() const noexcept { return end_of_line_ == '\r'; }
  std::int64_t number() const noexcept { return number_; }  // of the latest line, from 1 on

 private:
  // Returns where the line that starts at begin_ ends, searching from `from` on; npos: at the end
  // of the data.
  std::size_t find_end(std::size_t from);
  void refill();
  void examine_start();
  void require_one_kind_of_ends(std::string_view line) const;

  ByteStream& stream_;
  const std::string path_;
  const std::function<void(std::int64_t bytes)> on_progress_;
  char end_of_line_ = '\n';
  std::string text_;  // what was read and not returned yet starts at begin_
  std::size_t begin_ = 0;
  bool at_end_ = false;
  std::int64_t number_ = 0;     // of the latest line's first line
  std::int64_t num_lines_ = 0;  // all that were returned, those inside quoted fields included
  std::int64_t bytes_ = 0;
  std::int64_t reported_ = 0;
};

// Splits lines into their fields, without blanks and quotes around them. In a quoted field, two
// quotes stand for one. One thread only.
class CsvSplitter {
 public:
  explicit CsvSplitter(std::string path) : path_(std::move(path)) {}  // for messages

  // Returns the fields, valid until the next call and as long as the line. number: of the line.
  // Throws FileError naming path and line: a field with damaged quotes.
  const std::vector<std::string_view>& split(std::string_view line, std::int64_t number);

 private:
  const std::string path_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // the fields that are not as in the line
};

// Returns the number if a field is one as a whole, else nothing. True and False, in any case, are 1
// and 0. Infinity and NaN are not numbers.
std::optional<double> parse_csv_number(std::string_view field);

// Returns the place of the first of these letters that is not in a quoted field; npos: none.
std::size_t find_outside_quotes(std::string_view line, std::string_view letters);

// Returns a shell command that filters the lines of a file: "sed 1d 'FILE'", or, for a name of a
// packed file, "zcat 'FILE.gz' | sed 1d". end_in_cr: the ends of its lines are replaced first.
std::string filter_command(std::string_view filter, const std::string& path,
                           bool end_in_cr = false);

// Whether a field stands for a value that is missing: empty, "NA", "?".
bool is_missing_value(std::string_view field);

// Returns the start of a field for a message, without control characters.
std::string shown_csv_field(std::string_view field);

}  // namespace syncopate
