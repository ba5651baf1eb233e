// Checks all values of a table for signs that its columns or its header were misunderstood. Used by
// the reader of tables.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string_view>

#include "models/base/lower_case.h"
#include "worker/input/array/csv_lines.h"
#include "worker/input/array/csv_table.h"

namespace syncopate {
namespace {

constexpr std::size_t kFewestRows = 10;  // fewer say too little
constexpr std::size_t kManyRows = 100;   // one sample in 100 is like the first by chance
constexpr std::size_t kRareOneIn = 10;   // rows
constexpr std::size_t kMostFeatureClasses = 1000;

// The features of a table by row and column.
class FeatureGrid {
 public:
  explicit FeatureGrid(const CsvTable& table)
      : values_(table.features), columns_(static_cast<std::size_t>(table.num_features)) {}

  std::size_t columns() const { return columns_; }
  std::size_t rows() const { return values_.size() / columns_; }
  float at(std::size_t row, std::size_t column) const { return values_[row * columns_ + column]; }
  std::span<const float> row(std::size_t row) const {
    return values_.subspan(row * columns_, columns_);
  }

 private:
  std::span<const float> values_;
  std::size_t columns_;
};

// Returns 1 if three numbers or more rise from each to the next, -1 if they fall, else 0.
int direction_of(std::span<const float> numbers) {
  if (numbers.size() < 3) return 0;
  const auto is_ordered = [&](auto less) {
    return std::ranges::adjacent_find(numbers, std::not_fn(less)) == numbers.end();
  };
  return is_ordered(std::less()) ? 1 : is_ordered(std::greater()) ? -1 : 0;
}

// Whether no other sample has the first of these labels. Such labels must be rare in the table.
bool is_first_label_new(const std::vector<std::int32_t>& labels) {
  std::map<std::int32_t, std::size_t> samples;
  for (const std::int32_t label : labels) ++samples[label];
  const auto single =
      std::ranges::count_if(samples, [](const auto& each) { return each.second == 1; });
  return !labels.empty() && samples[labels.front()] == 1 &&
         static_cast<std::size_t>(single) * kRareOneIn < labels.size();
}

bool is_first_outside(const FeatureGrid& grid, std::size_t column) {
  bool has_less = false;
  bool has_more = false;
  for (std::size_t row = 1; row < grid.rows() && !(has_less && has_more); ++row) {
    has_less |= grid.at(row, column) <= grid.at(0, column);
    has_more |= grid.at(row, column) >= grid.at(0, column);
  }
  return !(has_less && has_more);
}

bool counts_rows(const FeatureGrid& grid, std::size_t column) {
  if (grid.rows() < kFewestRows) return false;
  for (std::size_t row = 0; row < grid.rows(); ++row) {
    if (grid.at(row, column) != grid.at(0, column) + static_cast<float>(row)) return false;
  }
  return true;
}

// Returns the largest class of a column that looks like classes; nothing for other columns.
std::optional<std::size_t> largest_class(const FeatureGrid& grid, std::size_t column) {
  std::vector<bool> seen(kMostFeatureClasses, false);
  std::size_t largest = 0;
  for (std::size_t row = 0; row < grid.rows(); ++row) {
    const float value = grid.at(row, column);
    if (!(value >= 0) || value >= kMostFeatureClasses || std::trunc(value) != value)
      return std::nullopt;
    const auto label = static_cast<std::size_t>(value);
    seen[label] = true;
    largest = std::max(largest, label);
  }
  const auto classes = static_cast<std::size_t>(std::ranges::count(seen, true));
  const bool has_all = classes == largest + (seen[0] ? 1 : 0);
  if (classes < 2 || !has_all || grid.rows() < classes * kRareOneIn) return std::nullopt;
  return largest;
}

// Returns the first of the features in front of a label that are one-hot with it; nothing if there
// are none.
std::optional<std::size_t> first_one_hot(const FeatureGrid& grid, const CsvTable& table) {
  const std::size_t label = table.layout.targets.front();
  if (grid.rows() < kFewestRows) return std::nullopt;
  std::vector<float> sums(table.targets.labels.begin(), table.targets.labels.end());
  const auto is_bit = [](float value) { return value == 0 || value == 1; };
  if (!std::ranges::all_of(sums, is_bit)) return std::nullopt;
  for (std::size_t i = grid.columns(); i-- > 1;) {
    if (table.layout.features[i] >= label) continue;
    for (std::size_t row = 0; row < grid.rows(); ++row) {
      if (!is_bit(grid.at(row, i)) || (sums[row] += grid.at(row, i)) > 1) return std::nullopt;
    }
    if (std::ranges::all_of(sums, [](float sum) { return sum == 1; })) {
      return table.layout.features[i];
    }
  }
  return std::nullopt;
}

std::vector<std::string> notes_on_labels(const FeatureGrid& grid, const CsvTable& table,
                                         const std::string& path, const CsvOptions& options) {
  const CsvColumns& layout = table.layout;
  const std::size_t label = layout.targets.front();
  if (const auto first = first_one_hot(grid, table); first && label + 1 == layout.count) {
    const std::string names =
        layout.header_line == 0 ? "" : fmt::format("NR=={}{{c=\"label\"}}", layout.header_line);
    const std::string merge = fmt::format(
        "awk -F, -v OFS=, '{{for(i={0};i<={1};++i)if($i==1)c=i-{0}}}{2}{{${0}=c;NF={0}}}1'",
        *first + 1, label + 1, names);
    return {fmt::format(
        "{}: {} to {} are one-hot labels, and the network learns the last of them from the others; "
        "make one column of them: {} > NEW.csv",
        path, layout.text(*first), layout.text(label),
        filter_command(merge, path, layout.end_in_cr))};
  }
  const bool is_named = !options.label_column.empty() ||
                        (!layout.header.empty() && means_label(layout.header[label]));
  std::optional<std::size_t> other;
  std::size_t largest = 0;
  for (std::size_t i = 0; !is_named && i < grid.columns(); ++i) {
    const auto found = largest_class(grid, i);
    if (!found) continue;
    if (other) return {};  // one of many whole numbers
    other = layout.features[i];
    largest = *found;
  }
  if (!other) return {};
  return {fmt::format(
      "{}: the labels are {}, the last, and {} looks like classes up to {}, too; if it has the "
      "labels: --data csv:{}:{}",
      path, layout.text(label), layout.text(*other), largest,
      options.data.empty() ? path : options.data,
      layout.header.empty() ? fmt::format("{}", *other + 1) : layout.header[*other])};
}

}  // namespace

bool first_sample_may_be_header(const CsvTable& table) {
  const FeatureGrid grid(table);
  if (!table.layout.header.empty() || grid.rows() <= kFewestRows) return false;
  const int direction = direction_of(grid.row(0));
  std::size_t others = 0;
  for (std::size_t row = 1; direction != 0 && row < grid.rows(); ++row) {
    others += direction_of(grid.row(row)) == direction ? 1 : 0;
  }
  std::size_t outside = 0;
  for (std::size_t i = 0; i < grid.columns(); ++i) outside += is_first_outside(grid, i) ? 1 : 0;
  const std::array signs = {direction != 0 && others * kRareOneIn < grid.rows(),
                            direction != 0 && others == 0 && grid.rows() > kManyRows,
                            is_first_label_new(table.targets.labels),
                            outside * 2 >= grid.columns()};
  return std::ranges::count(signs, true) >= 2;
}

std::vector<std::string> notes_on_columns(const CsvTable& table, const std::string& path,
                                          const CsvOptions& options) {
  constexpr std::array<std::string_view, 4> kRowNames = {"id", "idx", "index", "uuid"};
  const FeatureGrid grid(table);
  const CsvColumns& layout = table.layout;
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < grid.columns(); ++i) {
    const std::size_t column = layout.features[i];
    const bool is_count = counts_rows(grid, i);
    const bool is_id =
        !layout.header.empty() &&
        std::ranges::find(kRowNames, lower_case(layout.header[column])) != kRowNames.end();
    if (!is_count && !is_id) continue;
    notes.push_back(fmt::format(
        "{}: {} {}, and the network learns from it; if it says nothing about a sample, remove it: "
        "{} > NEW.csv",
        path, layout.text(column), is_count ? "counts the rows" : "names the rows",
        filter_command(fmt::format("cut -d, -f{} --complement", column + 1), path,
                       layout.end_in_cr)));
  }
  if (table.targets.labels.empty()) return notes;
  for (std::string& note : notes_on_labels(grid, table, path, options)) {
    notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace syncopate
