// The files of a report: a page for people, which needs no network and no script, a picture of
// each plot for papers, and CSV files for programs. Also what a terminal shows of the report.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>

#include "bench/compare/report/comparison.h"
#include "bench/compare/report/verdict.h"

namespace syncopate::bench {

// Returns the page of the report, which is HTML and also well-formed XML.
std::string html_page(const Comparison& comparison);

// Returns runs.csv: one row per run with the numbers of its summary; a field without a number is
// empty. Source: RFC 4180, with \n for a line end.
std::string runs_csv(const Comparison& comparison);
// Returns curves.csv, with a row per point of every run's curves; a point is "test" or "train".
std::string curves_csv(const Comparison& comparison);

// Returns workers.csv, with a row per worker of every run: its steps and where its time went.
std::string workers_csv(const Comparison& comparison);
// Returns staleness.csv: for each worker of every run, the number of gradients with a staleness in
// the range `from` to `to`, without empty ranges.
std::string staleness_csv(const Comparison& comparison);

// Writes report.html, plots/NAME.svg for each plot, and the CSV files into `dir`. Each file is
// replaced completely or not at all. Throws FileError.
void write_comparison_report(const std::filesystem::path& dir, const Comparison& comparison);

// Prints the comparison's table in aligned columns for a terminal of 100 characters, with long
// labels on several lines, and the machines below it.
void print_table(std::ostream& out, const Comparison& comparison);

// Prints the sentences of the verdict, its most important warnings and all claims as rows of
// tables, and what the numbers of the comparison's table mean.
void print_verdict(std::ostream& out, const Comparison& comparison, const Verdict& verdict);

}  // namespace syncopate::bench
