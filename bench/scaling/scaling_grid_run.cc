// Defines run_scaling_grid, which measures every combination of a grid and prints the scaling
// table.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/compare/report/machine.h"
#include "bench/harness/report.h"
#include "bench/scaling/scaling.h"
#include "bench/scaling/scaling_page.h"
#include "bench/scaling/scaling_rounds.h"
#include "bench/scaling/scaling_table.h"
#include "models/base/affinity.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

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

void run_scaling_grid(const ScalingOptions& options) {
  make_folder(options.report);
  const std::vector<ScalingCombination> combinations =
      combinations_of(*options.grid, options.strategies);
  std::vector<Workload> workloads;
  for (const std::string& model : options.models) workloads.push_back(find_workload(model));
  for (const ScalingCombination& c : combinations) batch_per_replica(options, 1, c.replicas);
  const int cpus = static_cast<int>(usable_cpus().size());
  ScalingReport report{.command = options.command, .processor = processor_name(), .tables = {}};
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
