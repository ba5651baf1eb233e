// The files of a report: a page for people, which needs no network and no script, and two CSV files
// for programs.
#pragma once

#include <filesystem>
#include <string>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// The page is also well-formed XML.
std::string html_page(const Comparison& comparison);

// One row per run with the numbers of its summary; a field without a number is empty.
// Source: RFC 4180, with \n for a line end.
std::string runs_csv(const Comparison& comparison);
// One row per point of every run's curves; the kind of a point is "test" or "train".
std::string curves_csv(const Comparison& comparison);

// Writes report.html, runs.csv and curves.csv into `dir`. Each file is replaced completely or not
// at all. Throws FileError.
void write_comparison_report(const std::filesystem::path& dir, const Comparison& comparison);

}  // namespace syncopate::bench
