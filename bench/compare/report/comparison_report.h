// The files of a report: a page for people, which needs no network and no script, a picture of
// each plot for papers, and JSON and CSV files for programs.
#pragma once

#include <filesystem>
#include <string>

#include "bench/compare/report/outcome.h"

namespace syncopate::bench {

// Returns the page of the report, which is HTML and also well-formed XML.
std::string html_page(const Outcome& outcome);

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
void write_comparison_report(const std::filesystem::path& dir, const Outcome& outcome);

// Adds the answer and the numbers behind it to DIR/comparison.json, in place of earlier ones.
// Numbers that are not known are null. Throws FileError.
//   "answer": {"form":FORM, "sentence":S, "winners":[NAME, ...], "next":NAME, "next_ratio":R,
//     "low":L, "high":H, "seeds":N, "seeds_needed":N},
//   "rows": [{"name":N, "seconds_to_target":MEAN, "times_the_best":R, "samples_to_target":MEAN,
//     "runs_to_target":N, "accuracy":A, "still_learning":B, "same_as":NAME,
//     "dropped_gradients":SHARE}, ...],
//   "claims": {"family_level":P, "pairs":[
//     {"measure":"accuracy"|"log_time", "a":NAME, "b":NAME, "difference":D, "low":L, "high":H,
//      "level":P, "adjusted_p":P, "detectable":D, "claimed":B} |
//     {"measure":"log_rank", "a":NAME, "b":NAME, "excess":E, "p":P, "level":P, "seeds_needed":N,
//      "claimed":B}, ...]},
//   "facts": [{"subject":S, "text":T, "is_warning":B}, ...]
void keep_outcome(const std::filesystem::path& dir, const Outcome& outcome);

}  // namespace syncopate::bench
