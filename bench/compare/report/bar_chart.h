// Horizontal bars. A group's label stands above its bars, so that it may be long.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace syncopate::bench {

struct Bar {
  std::optional<double> value;      // nothing: no bar, only dots and note
  std::optional<double> deviation;  // whiskers to both sides
  std::vector<double> dots;         // of single runs
  std::string note;                 // behind the bar
  std::string classes;              // of its colour
};

struct BarGroup {
  std::string label;
  std::vector<Bar> bars;
};

struct BarChart {
  std::string title;
  std::string axis_title;  // with unit
  std::vector<BarGroup> groups;
};

std::string draw(const BarChart& chart);

// Parts of a whole, a row each; drawn small, for panels.
struct StackedRow {
  std::string label;           // short
  std::vector<double> shares;  // in [0, 1]
};

struct StackedChart {
  std::string title;
  std::string label_title;  // of the rows: "worker"
  std::string axis_title;
  std::vector<std::string> part_names;
  std::vector<std::string> part_classes;
  std::vector<StackedRow> rows;
};

// Of panels, several of which stand beside each other.
inline constexpr double kPanelWidth = 300.0;

std::string draw(const StackedChart& chart);

}  // namespace syncopate::bench
