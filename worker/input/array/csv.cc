// Reads csv:FILE and csv:DIR, tables of numbers with labels or numbers as targets, into memory.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/random.h"
#include "worker/input/array/byte_stream.h"
#include "worker/input/array/class_labels.h"
#include "worker/input/array/csv_lines.h"
#include "worker/input/array/csv_table.h"
#include "worker/input/array/value_statistics.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

constexpr std::int64_t kTestPart = 5;  // one sample in five is a test sample

class TableDataset final : public Dataset {
 public:
  TableDataset(CsvTable table, int num_classes)
      : table_(std::move(table)),
        spec_(table_.targets.spec_of({table_.num_features}, DType::kF32, num_classes)) {}

  std::int64_t size() const noexcept override { return table_.targets.size(); }
  const SampleSpec& spec() const noexcept override { return spec_; }
  void read(std::int64_t index, const Draw& draw, const SampleView& sample) const override {
    apply_draw(draw, spec_.inputs[0], features(index), sample.inputs[0]);
    table_.targets.read(index, sample.target);
  }
  std::int32_t label(std::int64_t index) const override { return table_.targets.label(index); }
  std::uint64_t fingerprint(std::int64_t index) const override {
    const std::span<const std::byte> bytes = features(index);
    return hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) ^
           table_.targets.fingerprint(index);
  }

 private:
  std::span<const std::byte> features(std::int64_t index) const {
    check(index >= 0 && index < size(), "a sample outside the data set");
    const auto count = static_cast<std::size_t>(table_.num_features);
    return std::as_bytes(
        std::span(table_.features).subspan(static_cast<std::size_t>(index) * count, count));
  }

  CsvTable table_;
  SampleSpec spec_;
};

// Returns the samples of a table with the numbers in `rows`.
CsvTable take_rows(const CsvTable& table, std::span<const std::uint32_t> rows) {
  CsvTable part{.columns = table.columns,
                .num_features = table.num_features,
                .features = {},
                .targets = {.labels = {},
                            .numbers = {},
                            .numbers_per_sample = table.targets.numbers_per_sample},
                .layout = table.layout};
  const auto count = static_cast<std::size_t>(table.num_features);
  part.features.reserve(rows.size() * count);
  for (const std::uint32_t row : rows) {
    const auto from = std::span(table.features).subspan(row * count, count);
    part.features.insert(part.features.end(), from.begin(), from.end());
    if (!table.targets.are_numbers()) part.targets.labels.push_back(table.targets.labels[row]);
    const auto targets = static_cast<std::size_t>(table.targets.numbers_per_sample);
    const auto numbers = std::span(table.targets.numbers).subspan(row * targets, targets);
    part.targets.numbers.insert(part.targets.numbers.end(), numbers.begin(), numbers.end());
  }
  return part;
}

struct Tables {
  CsvTable train;
  CsvTable test;
  std::optional<CsvTable> validation{};
};

// Takes the test samples out of a table: a fifth of it, drawn by a fixed seed, so that every run of
// the same file has the same parts.
Tables split_table(CsvTable table, const std::filesystem::path& path) {
  const auto samples = table.targets.size();
  if (samples < 2 || samples > std::numeric_limits<std::uint32_t>::max()) {
    throw FileError(
        fmt::format("{}: expected 2 to 2^32 samples, because a fifth become test samples; found {}",
                    path.string(), samples));
  }
  std::vector<std::uint32_t> order =
      random_permutation(static_cast<std::uint32_t>(samples), 1, hash_name("csv test samples"));
  const auto first_test =
      order.begin() + (samples - std::max<std::int64_t>(1, samples / kTestPart));
  std::sort(order.begin(), first_test);
  std::sort(first_test, order.end());
  return {take_rows(table, {order.begin(), first_test}),
          take_rows(table, {first_test, order.end()})};
}

// Whether the header says that the column of labels has labels.
bool names_label(const CsvColumns& layout) {
  return !layout.header.empty() && means_label(layout.header[layout.targets.front()]);
}

// Returns the columns of targets that the text behind csv:FILE: names.
CsvOptions columns_in(std::string_view text) {
  constexpr std::string_view kTargets = "targets=";
  if (!text.starts_with(kTargets)) return {.label_column = std::string(text)};
  CsvOptions csv;
  for (text.remove_prefix(kTargets.size()); !text.empty();) {
    const std::size_t comma = std::min(text.find(','), text.size());
    csv.target_columns.emplace_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  if (csv.target_columns.empty()) {
    throw UsageError("--data csv:FILE:targets=: expected the names or numbers of columns");
  }
  return csv;
}

CsvTable read_file(const std::filesystem::path& path, CsvOptions csv, const DataOptions& options) {
  std::error_code ignored;
  const auto total = static_cast<std::int64_t>(std::filesystem::file_size(path, ignored));
  const bool is_packed = path.extension() == ".gz" || path.extension() == ".zst";
  if (options.on_progress && !is_packed) {
    csv.on_progress = [&](std::int64_t bytes) { options.on_progress(bytes, total); };
  }
  CsvTable table = read_csv(*open_byte_stream(path), path.string(), csv);
  for (const std::string& note : table.notes) log(LogLevel::kWarning, note);
  return table;
}

Tables read_folder(const std::filesystem::path& dir, const CsvOptions& csv,
                   const DataOptions& options) {
  const auto find = [&](const std::string& split) { return find_packed(dir, split + ".csv"); };
  const auto train = find("train");
  const auto test = find("test");
  if (!train || !test) {
    throw UsageError(fmt::format(
        "csv: {} has no {}.csv (nor with .gz or .zst); expected train.csv and test.csv there, and "
        "val.csv if there is a validation split; or name one file",
        dir.string(), train ? "test" : "train"));
  }
  Tables tables{read_file(*train, csv, options), read_file(*test, csv, options)};
  if (const auto validation = find("val")) {
    tables.validation = read_file(*validation, csv, options);
  }
  const auto require_same = [&](const CsvTable& other, const std::filesystem::path& path) {
    if (other.num_features == tables.train.num_features && other.columns == tables.train.columns)
      return;
    if (other.num_features == tables.train.num_features &&
        other.columns.empty() != tables.train.columns.empty()) {
      const bool train_has = other.columns.empty();
      const std::string with = train_has ? train->string() : path.string();
      const std::string without = train_has ? path.string() : train->string();
      const CsvColumns& layout = (train_has ? tables.train : other).layout;
      throw FileError(fmt::format(
          "{0} has a header, and {1} has none; give {1} the same one: ({2}; {3}) > NEW.csv", with,
          without,
          filter_command(fmt::format("sed -n {}p", layout.header_line), with, layout.end_in_cr),
          filter_command("cat", without, (train_has ? other : tables.train).layout.end_in_cr)));
    }
    const auto [found, expected] = std::ranges::mismatch(other.columns, tables.train.columns);
    if (found != other.columns.end() && expected != tables.train.columns.end()) {
      throw FileError(fmt::format(
          "{}: feature {} is '{}', but '{}' in {}; expected the same columns in the same order",
          path.string(), found - other.columns.begin() + 1, *found, *expected, train->string()));
    }
    throw FileError(fmt::format("{} has {} features, and {} has {}; expected the same columns",
                                path.string(), other.num_features, train->string(),
                                tables.train.num_features));
  };
  require_same(tables.test, *test);
  if (tables.validation) require_same(*tables.validation, dir / "val.csv");
  return tables;
}

}  // namespace

DataSplits open_csv(std::string_view argument, const DataOptions& options) {
  std::filesystem::path path = argument;
  CsvOptions csv;
  const std::size_t colon = argument.rfind(':');
  if (!std::filesystem::exists(path) && colon != std::string_view::npos) {
    path = argument.substr(0, colon);
    csv = columns_in(argument.substr(colon + 1));
  }
  if (!std::filesystem::exists(path)) {
    throw UsageError(
        fmt::format("--data csv:{}: there is no file or folder {}; expected --data "
                    "csv:FILE[:LABEL_COLUMN|:targets=COLUMN,...]",
                    argument, path.string()));
  }
  csv.data = path.string();
  Tables tables = std::filesystem::is_directory(path)
                      ? read_folder(path, csv, options)
                      : split_table(read_file(path, csv, options), path);
  std::vector<const CsvTable*> all = {&tables.train, &tables.test};
  if (tables.validation) all.push_back(&*tables.validation);
  std::int32_t largest_label = -1;
  for (const CsvTable* table : all) {
    for (const std::int32_t label : table->targets.labels) {
      largest_label = std::max(largest_label, label);
    }
  }
  const int classes = largest_label + 1;
  if (classes > 0) {
    const CsvColumns& layout = tables.train.layout;
    const std::size_t label = layout.targets.front();
    const std::string place = fmt::format("the labels are {}{}", layout.text(label),
                                          csv.label_column.empty() ? ", the last" : "");
    const std::string other =
        fmt::format("another column is named by --data csv:{0}:COLUMN, such as csv:{0}:{1}",
                    csv.data, label == 0 ? layout.count : 1);
    if (classes == 1) {
      throw UsageError(
          fmt::format("--data csv:{}: all labels are 0; expected at least two classes; {}; {}",
                      csv.data, place, other));
    }
    warn_about_empty_classes(
        tables.train.targets.labels, classes, path.string(),
        names_label(layout) ? ""
                            : fmt::format("; {}; {}; numbers to predict: --data csv:{}:targets={}",
                                          place, other, csv.data, label + 1));
  }
  DataSplits splits{.name = "csv"};
  splits.table_columns = to_text(tables.train.layout);
  for (const std::size_t column : tables.train.layout.targets) {
    splits.target_place +=
        (splits.target_place.empty() ? "" : ", ") + tables.train.layout.text(column);
  }
  splits.train = std::make_unique<TableDataset>(std::move(tables.train), classes);
  splits.test = std::make_unique<TableDataset>(std::move(tables.test), classes);
  if (tables.validation) {
    splits.validation = std::make_unique<TableDataset>(std::move(*tables.validation), classes);
  }
  // Each column has its own unit, and a network learns little from a column of large numbers.
  set_feature_statistics(splits);
  return splits;
}

}  // namespace syncopate
