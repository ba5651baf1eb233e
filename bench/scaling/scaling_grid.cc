#include "bench/scaling/scaling_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/compare/report/machine.h"
#include "bench/harness/report.h"
#include "bench/scaling/scaling.h"
#include "bench/scaling/scaling_page.h"
#include "bench/scaling/scaling_sides.h"
#include "bench/scaling/scaling_table.h"
#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "models/base/resource_limits.h"

namespace syncopate::bench {
namespace {

// Bounds threads and replicas. A larger number is a typing error, because no machine has the
// memory.
constexpr int kMost = 1024;

int parse_count(const std::string& word, const std::string& text) {
  const int count = parse_number<int>(text).value_or(0);
  if (count < 1 || count > kMost) {
    throw UsageError(fmt::format(
        "--grid {}: expected whole numbers from 1 to {}, separated by commas, but found '{}'", word,
        kMost, text));
  }
  return count;
}

// Returns the numbers after the '=' of a --grid word, ascending.
std::vector<int> parse_counts(const std::string& word) {
  std::vector<int> counts;
  const std::string list = word.substr(word.find('=') + 1);
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    counts.push_back(parse_count(word, list.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  std::ranges::sort(counts);
  const auto twice = std::ranges::adjacent_find(counts);
  if (twice != counts.end()) {
    throw UsageError(fmt::format("--grid {}: {} stands there twice; leave one out", word, *twice));
  }
  return counts;
}

namespace fs = std::filesystem;

void make_folder(const fs::path& dir) {
  if (dir.empty()) return;
  std::error_code error;
  fs::create_directories(dir, error);
  if (error) {
    throw UsageError("--report " + dir.string() + ": cannot make the folder: " + error.message() +
                     "; choose another one");
  }
}

std::string head_text(const TableHead& head) {
  return head.unit.empty() ? head.name : head.name + " (" + head.unit + ")";
}

void print_table(const ScalingTable& table) {
  const Table cells = scaling_cells(table);
  std::vector<std::vector<std::string>> lines(1);
  for (const TableHead& head : cells.heads) lines.front().push_back(head_text(head));
  for (const TableRow& row : cells.rows) {
    lines.push_back({row.name});
    lines.back().insert(lines.back().end(), row.cells.begin(), row.cells.end());
    lines.back().insert(lines.back().end(), row.notes.begin(), row.notes.end());
  }
  std::cout << table.model << " on " << table.cpus << (table.cpus == 1 ? " CPU\n" : " CPUs\n")
            << format_table(lines) << scaling_note(table) << '\n'
            << table.conditions << scaling_verdict(table) << '\n'
            << std::endl;
}

}  // namespace

ScalingGrid parse_scaling_grid(const std::vector<std::string>& words) {
  ScalingGrid grid;
  std::vector<std::string> seen;
  for (const std::string& word : words) {
    const std::string name = word.substr(0, word.find('='));
    const bool has_counts = name.size() < word.size();
    if (!has_counts || (name != "threads" && name != "replicas")) {
      throw UsageError("--grid " + word +
                       ": unknown word; expected threads=N,... or replicas=N,..., as in "
                       "--grid threads=1,2 replicas=1,2,4");
    }
    if (std::ranges::find(seen, name) != seen.end()) {
      throw UsageError("--grid " + word + ": " + name +
                       " stands there twice; put all its numbers behind one, separated by commas");
    }
    seen.push_back(name);
    (name == "threads" ? grid.threads : grid.replicas) = parse_counts(word);
  }
  return grid;
}

void require_scaling_strategy(const std::string& strategy) {
  if (strategy == kMirrored || strategy == kMultiWorkerMirrored) return;
  throw UsageError("--strategy " + strategy + ": choose from mirrored, " + kMultiWorkerMirrored);
}

std::vector<ScalingCombination> combinations_of(const ScalingGrid& grid,
                                                const std::vector<std::string>& strategies) {
  std::vector<ScalingCombination> combinations;
  const bool has_one = grid.replicas.front() == 1;
  for (const int threads : grid.threads) {
    if (has_one) combinations.push_back({kOneDevice, 1, threads});
  }
  for (auto strategy = strategies.begin(); strategy != strategies.end(); ++strategy) {
    require_scaling_strategy(*strategy);
    if (std::find(strategies.begin(), strategy, *strategy) != strategy) {
      throw UsageError("--strategy: " + *strategy + " stands there twice; leave one out");
    }
    for (const int threads : grid.threads) {
      for (const int replicas : grid.replicas) {
        if (replicas > 1) combinations.push_back({*strategy, replicas, threads});
      }
    }
  }
  return combinations;
}

void run_scaling_grid(const ScalingOptions& options) {
  make_folder(options.report);
  const std::vector<ScalingCombination> combinations =
      combinations_of(*options.grid, options.strategies);
  const std::vector<Workload> workloads = workloads_of(options);
  for (const ScalingCombination& c : combinations) batch_per_replica(options, 1, c.replicas);
  const int cpus = usable_cpu_count();
  ScalingReport report{.command = options.command, .processor = processor_name()};
  nlohmann::json document = nlohmann::json::array();
  for (const Workload& workload : workloads) {
    report.tables.push_back(make_scaling_table(
        measure_scaling(options, workload, make_grid_entries(options, workload, combinations)),
        cpus));
    print_table(report.tables.back());
    document.push_back(scaling_json(report.tables.back()));
  }
  if (!options.json_file.empty()) write_report(options.json_file, document.dump(2));
  if (options.report.empty()) return;
  write_scaling_page(options.report / "scaling.html", report);
  std::cout << (options.report / "scaling.html").string() << std::endl;
}

}  // namespace syncopate::bench
