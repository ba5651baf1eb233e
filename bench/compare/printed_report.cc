#include "bench/compare/printed_report.h"

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "bench/compare/map_file.h"
#include "bench/compare/report/comparison_report.h"
#include "bench/compare/report/map_report.h"
#include "bench/compare/report/outcome.h"
#include "bench/compare/report/outcome_report.h"
#include "bench/compare/report/strategy_map.h"
#include "bench/compare/report/verdict.h"

namespace syncopate::bench {
namespace {

void print_explanation(const Comparison& comparison, std::ostream& out) {
  print_table(out, comparison);
  print_verdict(out, comparison, verdict(comparison));
}

void print_page(const std::filesystem::path& dir, bool explains, std::ostream& out) {
  out << "Figure and method: " << (dir / "report.html").string()
      << (explains ? "" : "  (or --explain)") << "\n";
}

}  // namespace

void write_report_files(const std::filesystem::path& dir, const Comparison& comparison) {
  keep_verdict(dir, comparison, verdict(comparison));
  write_comparison_report(dir, comparison);
}

void write_and_print_map(const std::filesystem::path& dir, bool explains, std::ostream& out) {
  const std::vector<std::string> clusters = clusters_in(dir);
  std::vector<Comparison> comparisons = read_map(dir, clusters);
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    write_report_files(dir / clusters[c], comparisons[c]);
    if (!explains) continue;
    out << "\nOn the cluster " << clusters[c] << ":\n";
    print_explanation(comparisons[c], out);
  }
  const StrategyMap map = make_map(clusters, std::move(comparisons));
  out << '\n';
  print_map(out, map);
  write_map_report(dir, map, map.first().command);
  print_page(dir, explains, out);
}

void write_and_print_report(const std::filesystem::path& dir, const Comparison& comparison,
                            bool explains, std::ostream& out) {
  write_report_files(dir, comparison);
  if (explains) {
    print_explanation(comparison, out);
    out << '\n';
  }
  print_outcome(out, outcome_of("", comparison));
  print_page(dir, explains, out);
}

}  // namespace syncopate::bench
