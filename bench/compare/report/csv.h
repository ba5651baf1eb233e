// The comparison as tables for other programs. Source: RFC 4180, with \n for an end of line.
#pragma once

#include <filesystem>
#include <string>

#include "bench/compare/report/comparison.h"

namespace syncopate::bench {

// One row per run with all of its summary; empty fields where there is no number.
std::string runs_csv(const Comparison& comparison);
// One row per point of every run's curves: kind is "test" or "train".
std::string curves_csv(const Comparison& comparison);

// Written whole or not at all. Throws FileError.
void write_csv(const std::filesystem::path& path, const Comparison& comparison);  // runs_csv
void write_curves_csv(const std::filesystem::path& path, const Comparison& comparison);

}  // namespace syncopate::bench
