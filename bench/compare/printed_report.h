// Writes the report of a comparison, or of a map of several clusters, to its folder, and prints its
// answer in the terminal.
#pragma once

#include <filesystem>
#include <iosfwd>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// Writes the files of a report: the verdict in comparison.json, the page, the figures and the data.
// Throws FileError.
void write_report_files(const std::filesystem::path& dir, const Comparison& comparison);

// Writes the files of the report, and prints the answer and the path of the page to `out`.
// explains: whether all claims, warnings and conditions are printed first. Throws FileError.
void write_and_print_report(const std::filesystem::path& dir, const Comparison& comparison,
                            bool explains, std::ostream& out);

// Prints the map of strategies in the folder to `out`, and writes its page and the pages of its
// clusters. explains: whether all claims, warnings and conditions of each cluster are printed
// first. run_wall_seconds: see Comparison. Throws FileError.
void write_and_print_map(const std::filesystem::path& dir, bool explains, std::ostream& out,
                         double run_wall_seconds = 0.0);

}  // namespace syncopate::bench
