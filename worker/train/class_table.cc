#include "worker/train/class_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "worker/input/pictures/image_folder.h"

namespace syncopate {
namespace {

nlohmann::ordered_json number_or_null(const std::optional<double>& number) {
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
}

}  // namespace

std::string join_class_names(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, "\n"));
}

std::vector<std::string> split_class_names(const std::string& names, std::int64_t num_classes) {
  std::vector<std::string> split;
  std::istringstream list(names);
  for (std::string name; std::getline(list, name);) split.push_back(name);
  if (std::ssize(split) != num_classes) split.clear();
  return split;
}

std::string class_table(std::span<const ClassCounts> classes, const std::vector<std::string>& names,
                        bool is_map) {
  const auto percent = [](const std::optional<double>& fraction) {
    return fraction ? fmt::format("{:.2f}%", 100.0 * *fraction) : std::string("-");
  };
  std::string text =
      fmt::format("{:<7}{:>10}{:>12}{:>10}{:>10}{}\n", "class", is_map ? "pixels" : "samples",
                  "precision", "recall", "IoU", names.empty() ? "" : "  name");
  std::size_t number = 0;
  for (const ClassCounts& counts : classes) {
    text +=
        fmt::format("{:<7}{:>10}{:>12}{:>10}{:>10}{}\n", number, counts.samples,
                    percent(counts.precision()), percent(counts.recall()), percent(counts.iou()),
                    names.empty() ? "" : "  " + printable(names[number]));
    ++number;
  }
  return text;
}

nlohmann::ordered_json classes_as_json(std::span<const ClassCounts> classes,
                                       const std::vector<std::string>& names) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ClassCounts& counts : classes) {
    nlohmann::ordered_json row = {{"class", rows.size()}};
    if (!names.empty()) row["name"] = names[rows.size()];
    row["samples"] = counts.samples;
    row["precision"] = number_or_null(counts.precision());
    row["recall"] = number_or_null(counts.recall());
    row["iou"] = number_or_null(counts.iou());
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace syncopate
