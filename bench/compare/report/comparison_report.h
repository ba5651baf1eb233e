// Makes the files of a report: a page for people, which needs no network and no script; a picture
// of each plot, for papers; and JSON and CSV files for programs.
#pragma once

#include <filesystem>
#include <string>

#include "bench/compare/report/outcome.h"

namespace syncopate::bench {

// Returns the page of the report, which is HTML and also well-formed XML.
std::string html_page(const Outcome& outcome);

// Returns the contents of runs.csv: one row per run with the numbers of its summary. Unknown
// numbers are empty fields. Source: RFC 4180, with \n as line end.
std::string runs_csv(const Comparison& comparison);
// Returns the contents of curves.csv: one row per point of every run's curves; the kind of a point
// is "test" or "train".
std::string curves_csv(const Comparison& comparison);

// Returns the contents of workers.csv: one row per worker of every run, with the steps of the
// worker and the parts of its time.
std::string workers_csv(const Comparison& comparison);
// Returns the contents of staleness.csv: for each worker of every run, the number of gradients with
// a staleness from `from` to `to`. Ranges without gradients are left out.
std::string staleness_csv(const Comparison& comparison);

// Writes report.html, plots/NAME.svg for each plot, and the CSV files into `dir`. Each file is
// replaced completely or not at all. Throws FileError.
void write_comparison_report(const std::filesystem::path& dir, const Outcome& outcome);

// Writes the answer, and the numbers from which the answer follows, into DIR/comparison.json, in
// place of an earlier answer. Unknown numbers are null. Throws FileError.
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
