// Splits a text file into lines, and a line into fields. Used by the readers of tables.
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

// Reads the lines of a file. A line ends with LF, CR LF, or, in a file without LF, CR. A line end
// inside a quoted field does not end the line. One thread only.
class CsvLines {
 public:
  // path: the path of the file, for messages. on_progress: called from time to time with the number
  // of unpacked bytes read so far; may be empty.
  CsvLines(ByteStream& stream, std::string path,
           std::function<void(std::int64_t bytes)> on_progress);

  // Returns the next line without its line end; nullopt at the end of the data. The result is valid
  // until the next call. Throws FileError for a line of more than 64 MB, for a file with both CR
  // and LF as line ends, for UTF-16, and for a file that is not text.
  std::optional<std::string_view> next();
  // Whether lines end with CR, which shell commands do not treat as a line end.
  bool end_in_cr() const noexcept { return end_of_line_ == '\r'; }
  std::int64_t number() const noexcept { return number_; }  // number of the latest line, from 1

 private:
  // Returns the end of the line that starts at begin_, searching from `from` on; npos if the data
  // end first.
  std::size_t find_end(std::size_t from);
  void refill();
  void examine_start();
  void require_one_kind_of_ends(std::string_view line) const;

  ByteStream& stream_;
  const std::string path_;
  const std::function<void(std::int64_t bytes)> on_progress_;
  char end_of_line_ = '\n';
  std::string text_;  // text that was read; text that was not returned yet starts at begin_
  std::size_t begin_ = 0;
  bool at_end_ = false;
  // The number of the line that next() returned last. If quoted fields of this line have line ends,
  // the line spans several lines of the file, and number_ is the number of the first of these
  // lines.
  std::int64_t number_ = 0;
  // The number of lines of the file that next() has returned so far, including line ends inside
  // quoted fields.
  std::int64_t num_lines_ = 0;
  std::int64_t bytes_ = 0;
  std::int64_t reported_ = 0;
};

// Splits lines into fields and removes blanks and quotes around the fields. Inside a quoted field,
// two quotes mean one quote. One thread only.
class CsvSplitter {
 public:
  explicit CsvSplitter(std::string path) : path_(std::move(path)) {}  // for messages

  // Returns the fields of a line, which are valid until the next call and as long as `line`.
  // number: the number of the line. Throws FileError naming path and line if a quoted field does
  // not end or has text behind its closing quote.
  const std::vector<std::string_view>& split(std::string_view line, std::int64_t number);

 private:
  const std::string path_;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // the fields from which quotes were removed
};

// Returns the number if the whole field is a number, else nullopt. True and False, in upper or
// lower case, are 1 and 0. Infinity and NaN do not count as numbers.
std::optional<double> parse_csv_number(std::string_view field);

// Returns the position of the first character outside quoted fields that is one of `letters`; npos
// if there is none.
std::size_t find_outside_quotes(std::string_view line, std::string_view letters);

// Returns a shell command that applies `filter` to the lines of a file: "sed 1d 'FILE'", or "zcat
// 'FILE.gz' | sed 1d" for the name of a packed file. end_in_cr: lines end with CR, so the command
// replaces the line ends first.
std::string filter_command(std::string_view filter, const std::string& path,
                           bool end_in_cr = false);

// Whether a field means a missing value: it is empty, "NA" or "?", for example.
bool is_missing_value(std::string_view field);

// Returns the beginning of a field without control characters, for a message.
std::string shown_csv_field(std::string_view field);

}  // namespace syncopate
