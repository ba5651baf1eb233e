// The report as one page that needs nothing else: no network, no script.
#pragma once

#include <filesystem>
#include <string>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// The page is also well-formed XML.
std::string html_page(const Comparison& comparison);

// Written whole or not at all. Throws FileError.
void write_html(const std::filesystem::path& path, const Comparison& comparison);

// Makes report.html, runs.csv and curves.csv in `dir`, each whole or not at all. Throws FileError.
void write_report(const std::filesystem::path& dir, const Comparison& comparison);

}  // namespace syncopate::bench
