#include "bench/compare/printed_report.h"

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "bench/compare/map_file.h"
#include "bench/compare/report/comparison_report.h"
#include "bench/compare/report/map_report.h"
#include "bench/compare/report/map_words.h"
#include "bench/compare/report/outcome.h"
#include "bench/compare/report/strategy_map.h"
#include "bench/compare/report/terminal_report.h"

namespace syncopate::bench {
namespace {

void write_files(const std::filesystem::path& dir, const Outcome& outcome) {
  keep_outcome(dir, outcome);
  write_comparison_report(dir, outcome);
}

void print_page(const std::filesystem::path& dir, bool explains, std::ostream& out) {
  out << "Figure and method: " << (dir / "report.html").string()
      << (explains ? "" : "  (or --explain)") << "\n";
}

}  // namespace

void write_report_files(const std::filesystem::path& dir, const Comparison& comparison) {
  write_files(dir, outcome_of("", comparison));
}

void write_and_print_map(const std::filesystem::path& dir, bool explains, std::ostream& out,
                         double run_wall_seconds) {
  const std::vector<std::string> clusters = clusters_in(dir);
  std::vector<Comparison> comparisons = read_map(dir, clusters);
  for (Comparison& comparison : comparisons) {
    comparison.run_wall_seconds = run_wall_seconds * static_cast<double>(clusters.size());
  }
  const StrategyMap map = make_map(clusters, std::move(comparisons));
  for (const Outcome& outcome : map.columns) {
    write_files(dir / outcome.cluster, outcome);
    if (!explains) continue;
    out << "\nOn the cluster " << outcome.cluster << ":\n";
    print_explanation(out, outcome);
  }
  out << '\n';
  print_map(out, map);
  write_map_report(dir, map, map.first().command);
  keep_answer(dir, map_verdict(map));
  print_page(dir, explains, out);
}

void write_and_print_report(const std::filesystem::path& dir, const Comparison& comparison,
                            bool explains, std::ostream& out) {
  const Outcome outcome = outcome_of("", comparison);
  write_files(dir, outcome);
  if (explains) {
    print_explanation(out, outcome);
    out << '\n';
  }
  print_outcome(out, outcome);
  print_page(dir, explains, out);
}

}  // namespace syncopate::bench
