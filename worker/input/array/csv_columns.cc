#include "worker/input/array/csv_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "models/base/errors.h"
#include "models/base/lower_case.h"
#include "models/base/parse_number.h"
#include "worker/input/array/csv_lines.h"
#include "worker/input/array/csv_table.h"

namespace syncopate {
namespace {

using Fields = std::vector<std::string_view>;

constexpr std::string_view kCounts = "counts the columns";

// Whether a field that is no number may be a name: a sample may have "5;2" or "$3".
bool may_be_name(std::string_view field) {
  return !is_missing_value(field) &&
         std::string_view("0123456789+-.$").find(field[0]) == std::string_view::npos;
}

// Returns the number that all numeric fields have above their places, such as 0 for "0,1,x";
// nothing if they differ, or there are none.
std::optional<double> offset_from_places(const Fields& fields) {
  std::optional<double> offset;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::optional<double> value = parse_csv_number(fields[i]);
    if (!value) continue;
    const double above = *value - static_cast<double>(i);
    if (offset && *offset != above) return std::nullopt;
    offset = above;
  }
  return offset;
}

enum class FirstLine : std::uint8_t { kHeader, kSample, kDoubtful };

// Tells whether a line has names, numbers of columns among them, as pandas writes them for columns
// without names, from 0 on. A line of other numbers and words is no header: a missing value would
// make one of a sample.
FirstLine kind_of(const Fields& fields) {
  const auto is_number = [](std::string_view field) { return parse_csv_number(field).has_value(); };
  const auto numbers = static_cast<std::size_t>(std::ranges::count_if(fields, is_number));
  if (numbers == 0) return FirstLine::kHeader;
  const std::optional<double> offset = offset_from_places(fields);
  if (numbers == fields.size()) {
    const bool is_count = offset && (numbers > 3    ? *offset >= 0
                                     : numbers == 3 ? *offset == 0 || *offset == 1
                                     : numbers == 2 ? *offset == 0
                                                    : fields[0] == "0");
    return is_count ? FirstLine::kDoubtful : FirstLine::kSample;
  }
  // The first name of pandas' header is empty: this column has the numbers of the rows.
  const bool are_names =
      std::all_of(fields.begin() + (fields[0].empty() ? 1 : 0), fields.end(),
                  [&](std::string_view field) { return is_number(field) || may_be_name(field); });
  const bool counts = offset && (*offset == 0 || *offset == 1 || *offset == -1);
  return counts && are_names ? FirstLine::kHeader : FirstLine::kSample;
}

// How likely the name of a column means the labels.
enum class LabelName : std::uint8_t { kNo, kPossible, kCertain };

LabelName label_name(std::string_view name) {
  constexpr std::array<std::string_view, 6> kCertain = {"label",   "labels", "class",
                                                        "classes", "target", "targets"};
  constexpr std::array<std::string_view, 10> kPossible = {
      "y",         "species", "category", "categories", "outcome",
      "diagnosis", "digit",   "variety",  "survived",   "quality"};
  const std::string lower = lower_case(name);
  if (std::ranges::find(kCertain, lower) != kCertain.end()) return LabelName::kCertain;
  if (std::ranges::find(kPossible, lower) != kPossible.end()) return LabelName::kPossible;
  for (std::string word : words_of(name)) {
    if (word == "y") return LabelName::kPossible;
    word.resize(word.find_last_not_of("0123456789") + 1);
    if (std::ranges::find(kCertain, word) != kCertain.end()) return LabelName::kPossible;
  }
  return LabelName::kNo;
}

// Chooses the columns of one table.
class ColumnChooser {
 public:
  ColumnChooser(const FirstCsvLine& line, const CsvOptions& options)
      : line_(line),
        path_(line.path),
        options_(options),
        flag_path_(options.data.empty() ? line.path : options.data) {
    columns_.count = line.fields.size();
    columns_.end_in_cr = line.end_in_cr;
    const FirstLine kind = kind_of(line.fields);
    if (kind == FirstLine::kDoubtful) refuse_first_line(line, kCounts, {});
    if (kind == FirstLine::kSample) return;
    columns_.header_line = line.number;
    columns_.header.assign(line.fields.begin(), line.fields.end());
  }

  CsvColumns choose(std::vector<std::string>& notes) {
    if (options_.target_columns.empty()) {
      columns_.targets = {find_label_column()};
    } else {
      for (const std::string& name : options_.target_columns) {
        const std::size_t column = find_column(name, "target");
        if (std::ranges::find(columns_.targets, column) != columns_.targets.end()) {
          throw UsageError(fmt::format("--data: {} is twice among the targets of {}",
                                       columns_.text(column), path_));
        }
        columns_.targets.push_back(column);
      }
    }
    for (std::size_t i = 0; i < columns_.count; ++i) {
      if (std::ranges::find(columns_.targets, i) != columns_.targets.end()) continue;
      if (has_name(i)) {
        columns_.features.push_back(i);
      } else {
        notes.push_back(fmt::format(
            "{}: {} has no name and is left out, because pandas and R write the numbers of the "
            "rows so; to use the column, give it a name in the first line",
            path_, columns_.text(i)));
      }
    }
    if (!columns_.features.empty()) return std::move(columns_);
    if (options_.target_columns.empty()) {
      throw FileError(
          fmt::format("{}: line {} names one of {} columns; expected names of two or "
                      "more, one of them the label",
                      path_, line_.number, columns_.count));
    }
    throw UsageError(fmt::format(
        "--data: all {} columns of {} are targets or have no name; leave out those that "
        "the network predicts from",
        columns_.count, path_));
  }

 private:
  // pandas reads a column without a name as "Unnamed: 0".
  bool has_name(std::size_t column) const {
    return columns_.header.empty() ||
           (!columns_.header[column].empty() && !columns_.header[column].starts_with("Unnamed: "));
  }

  std::size_t find_label_column() const {
    if (!options_.label_column.empty()) return find_column(options_.label_column, "label");
    std::size_t last = columns_.count - 1;
    while (last > 0 && !has_name(last)) --last;
    if (columns_.header.empty()) return last;
    const LabelName last_kind = label_name(columns_.header[last]);
    for (std::size_t i = 0; i < last; ++i) {
      const std::string& name = columns_.header[i];
      const LabelName kind = label_name(name);
      if (kind == LabelName::kNo) continue;
      const bool last_is_more = last_kind == LabelName::kCertain ||
                                (last_kind == LabelName::kPossible && is_coordinate(name));
      if (kind == LabelName::kPossible && last_is_more) continue;
      throw UsageError(fmt::format(
          "--data csv:{0}: the labels are the last column, '{1}', and the header has '{2}', too; "
          "give csv:{0}:{2} or csv:{0}:{1}",
          flag_path_, columns_.header[last], name));
    }
    return last;
  }

  // Whether this name is the second of a pair of columns x and y that describes points.
  bool is_coordinate(std::string_view name) const {
    return lower_case(name) == "y" &&
           std::ranges::any_of(columns_.header,
                               [](const std::string& each) { return lower_case(each) == "x"; });
  }

  // Returns the column of a name of the header or of a number from 1 on. what: "label", "target".
  std::size_t find_column(const std::string& wanted, std::string_view what) const {
    const std::vector<std::string>& header = columns_.header;
    const auto named = std::ranges::find(header, wanted);
    const std::size_t number = parse_number<std::size_t>(wanted).value_or(0);
    const bool is_number = number >= 1 && number <= columns_.count;
    if (named != header.end()) {
      const auto column = static_cast<std::size_t>(named - header.begin());
      if (is_number && number - 1 != column) {
        throw UsageError(fmt::format(
            "--data: {0} column '{1}' of {2} may be {3}, by its name, or {4}, by its number; give "
            "the columns other names: {5} > NEW.csv",
            what, wanted, path_, columns_.text(column), columns_.text(number - 1),
            filter_command(fmt::format("sed '{}s/[0-9][0-9]*/c&/g'", line_.number), path_,
                           line_.end_in_cr)));
      }
      return column;
    }
    if (is_number) return number - 1;
    std::string known;
    for (std::size_t i = 0; i < std::min<std::size_t>(header.size(), 20); ++i) {
      known += (i == 0 ? ": " : ", ") + shown_csv_field(header[i]);
    }
    throw UsageError(fmt::format(
        "--data: {} has no {} column '{}'; expected a number from 1 to {}{}{}", path_, what, wanted,
        columns_.count, header.empty() ? "" : " or a name of its header", known));
  }

  const FirstCsvLine& line_;
  const std::string& path_;
  const CsvOptions& options_;
  const std::string& flag_path_;
  CsvColumns columns_;
};

// Returns the columns of these names; nothing if one of them is absent or there twice.
std::optional<std::vector<std::size_t>> places_of(const std::vector<std::string>& names,
                                                  const Fields& header) {
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(header, name);
    if (found == header.end() || std::find(found + 1, header.end(), name) != header.end()) {
      return std::nullopt;
    }
    places.push_back(static_cast<std::size_t>(found - header.begin()));
  }
  return places;
}

// Returns the columns at the places of training, in a table of `count` columns; nothing if the
// number is another one.
std::optional<std::vector<std::size_t>> places_by_count(std::size_t count,
                                                        const CsvColumns& trained) {
  if (count == trained.count) return trained.features;
  if (count != trained.features.size()) return std::nullopt;
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), std::size_t{0});
  return places;
}

// Whether one of these fields, or of all, is a number.
bool any_is_number(const Fields& fields, const std::optional<std::vector<std::size_t>>& places) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const bool is_one = !places || std::ranges::find(*places, i) != places->end();
    if (is_one && parse_csv_number(fields[i])) return true;
  }
  return false;
}

}  // namespace

std::string CsvColumns::text(std::size_t column) const {
  return header.empty() ? fmt::format("field {}", column + 1)
                        : fmt::format("field {} ({})", column + 1, shown_csv_field(header[column]));
}

void refuse_first_line(const FirstCsvLine& line, std::string_view what_it_does,
                       const std::vector<std::string>& names) {
  const std::string sample =
      names.empty()
          ? fmt::format(
                "names before it: {} > NEW.csv",
                filter_command(fmt::format("sed '{}{{h;s/[0-9][0-9]*/c&/g;G}}'", line.number),
                               line.path, line.end_in_cr))
          : fmt::format("the header of the training before it: {}",
                        shown_csv_field(fmt::format("{}", fmt::join(names, ","))));
  throw UsageError(fmt::format(
      "{}: line {} {}, {}, as a header of numbers does; if it is a header, remove it: {} > "
      "NEW.csv; if it is a sample, put {}",
      line.path, line.number, what_it_does,
      shown_csv_field(fmt::format("{}", fmt::join(line.fields, ","))),
      filter_command(fmt::format("sed {}d", line.number), line.path, line.end_in_cr), sample));
}

bool means_label(std::string_view column_name) { return label_name(column_name) != LabelName::kNo; }

CsvColumns choose_csv_columns(const FirstCsvLine& line, const CsvOptions& options,
                              std::vector<std::string>& notes) {
  return ColumnChooser(line, options).choose(notes);
}

std::vector<std::string> header_for(const CsvColumns& trained, std::size_t count) {
  if (trained.header.empty() || count == trained.count) return trained.header;
  std::vector<std::string> names;
  for (const std::size_t feature : trained.features) names.push_back(trained.header[feature]);
  return names;
}

CsvColumns find_csv_columns(const FirstCsvLine& line, const CsvColumns& trained) {
  const Fields& fields = line.fields;
  CsvColumns found{.count = fields.size()};
  found.end_in_cr = line.end_in_cr;
  const std::vector<std::string> names = header_for(trained, trained.features.size());
  const auto by_place = places_by_count(fields.size(), trained);
  const auto by_name = names.empty() ? std::nullopt : places_of(names, fields);
  const bool is_same = !names.empty() && (std::ranges::equal(fields, trained.header) ||
                                          std::ranges::equal(fields, names));
  const FirstLine kind = kind_of(fields);
  const bool is_header =
      is_same || (kind == FirstLine::kHeader && (by_name || !any_is_number(fields, by_place)));
  const bool has_label_name = std::ranges::any_of(
      fields, [](std::string_view field) { return label_name(field) == LabelName::kCertain; });
  const bool is_doubtful =
      kind == FirstLine::kDoubtful || (kind == FirstLine::kHeader && has_label_name);
  if (by_place && is_doubtful && !is_header) {
    refuse_first_line(line, kCounts, header_for(trained, fields.size()));
  }
  if (is_header) {
    found.header_line = line.number;
    found.header.assign(fields.begin(), fields.end());
  }
  if (is_header && !is_same && !names.empty()) {
    if (!by_name) {
      const auto wrong = std::ranges::find_if(
          names, [&](const std::string& name) { return std::ranges::count(fields, name) != 1; });
      throw UsageError(fmt::format(
          "{}: expected one column '{}', which the network was trained on, found {}; give a table "
          "with the columns {}",
          line.path, shown_csv_field(*wrong), std::ranges::count(fields, *wrong),
          shown_csv_field(fmt::format("{}", fmt::join(names, ",")))));
    }
    found.features = *by_name;
    return found;
  }
  if (!by_place) {
    throw UsageError(fmt::format(
        "{}: found {} columns; expected the {} that the network reads{}", line.path, found.count,
        trained.features.size(),
        trained.count == trained.features.size()
            ? ""
            : fmt::format(", or the {} of the table that it was trained on", trained.count)));
  }
  found.features = *by_place;
  return found;
}

std::string to_text(const CsvColumns& columns) {
  const nlohmann::ordered_json json = {{"header", columns.header},
                                       {"count", columns.count},
                                       {"features", columns.features},
                                       {"targets", columns.targets}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

CsvColumns parse_csv_columns(std::string_view text) {
  CsvColumns columns;
  bool is_good = false;
  try {
    const auto json = nlohmann::json::parse(text);
    columns.header = json.at("header").get<std::vector<std::string>>();
    columns.count = json.at("count").get<std::size_t>();
    columns.features = json.at("features").get<std::vector<std::size_t>>();
    columns.targets = json.at("targets").get<std::vector<std::size_t>>();
    const auto is_inside = [&](std::size_t column) { return column < columns.count; };
    is_good = (columns.header.empty() || columns.header.size() == columns.count) &&
              std::ranges::all_of(columns.features, is_inside) &&
              std::ranges::all_of(columns.targets, is_inside);
  } catch (const nlohmann::json::exception&) {
    is_good = false;
  }
  if (!is_good) {
    throw FileError(
        fmt::format("the columns of a table are '{}'; expected JSON with header, count, "
                    "features and targets",
                    text.substr(0, 100)));
  }
  return columns;
}

}  // namespace syncopate
