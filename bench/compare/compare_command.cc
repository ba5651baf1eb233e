// syncopate-bench compare and report train one network under several strategies, with and without
// fault injection, and report the comparison.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

#include "bench/compare/archive.h"
#include "bench/compare/compare.h"
#include "bench/compare/compare_flags.h"
#include "bench/compare/comparison_file.h"
#include "bench/compare/map_file.h"
#include "bench/compare/printed_report.h"
#include "bench/compare/report/against.h"
#include "bench/compare/report/comparison.h"
#include "bench/compare/verification.h"
#include "bench/harness/bench_commands.h"
#include "bench/harness/report.h"
#include "deploy/cli/command_line.h"
#include "deploy/cli/flag_set.h"
#include "models/base/errors.h"

namespace syncopate::bench {

namespace {

// Returns DIR for DIR/, because messages add names and colons to the folder.
std::filesystem::path without_slash(const std::filesystem::path& dir) {
  return dir.has_filename() ? dir : dir.parent_path();
}

}  // namespace

Command declare_compare(FlagSet& flags, const Environment& environment) {
  const auto words = std::make_shared<CompareFlags>(flags);
  const auto record = std::make_shared<std::filesystem::path>();
  flags.add(
      "--replay", record.get(),
      "do not compare; instead compute all updates of an earlier job again, bit for bit. FILE is "
      "the record that `syncopate train --record` wrote during that job. Requires --data",
      {.value = "FILE"});
  return [words, record, environment] {
    if (!record->empty()) {
      words->check_replay();
      return replay(*record, words->options(environment), std::cout);
    }
    StopSignal signals;  // is created before any other thread
    CompareOptions options = words->options(environment);
    options.report = without_slash(options.report);
    const std::string command = command_line();
    if (words->shares_runs()) options.shared_command = command;
    compare(options, command, signals, std::cout);
  };
}

namespace {

struct ReportOptions {
  VerifyOptions verify;  // with the folder
  bool verifies = false;
  bool explains = false;
  std::filesystem::path archive;
  std::filesystem::path against;
};

// Throws UsageError for flags that would make the program ignore another flag.
void require_consistent(const ReportOptions& options) {
  if (!options.against.empty()) {
    const char* other = options.verifies           ? "--verify"
                        : !options.archive.empty() ? "--archive"
                        : options.explains         ? "--explain"
                                                   : nullptr;
    if (other != nullptr) {
      throw UsageError(fmt::format(
          "--against: prints only the speeds of two comparisons; leave --against or {} out",
          other));
    }
  }
  if (options.verifies && options.explains && options.archive.empty()) {
    throw UsageError("--explain: --verify prints no report; leave --explain or --verify out");
  }
}

// Reads a comparison on one cluster.
Comparison read_one(const std::filesystem::path& dir) {
  if (!has_map(dir)) return read_comparison(dir);
  throw UsageError(fmt::format(
      "--against: {} has comparisons on several clusters; give the folder of one, such as {}",
      dir.string(), (dir / clusters_in(dir).front()).string()));
}

// Makes the report in the folder of a comparison, or of a map of several clusters, again.
void report_again(const std::filesystem::path& dir, bool explains) {
  if (has_map(dir)) {
    for (const std::string& cluster : clusters_in(dir)) {
      restore_comparison_file(dir / cluster, std::cout);
    }
    return write_and_print_map(dir, explains, std::cout);
  }
  restore_comparison_file(dir, std::cout);
  write_and_print_report(dir, read_comparison(dir), explains, std::cout);
}

}  // namespace

Command declare_report(FlagSet& flags, const Environment& environment) {
  const auto options = std::make_shared<ReportOptions>();
  flags.add("--explain", &options->explains,
            "before the recommendation, print the results, tests, warnings and conditions of the "
            "comparison");
  flags.add("--verify", &options->verifies,
            "check that the data set, the network and the flags are those of the comparison, train "
            "one run of each variant again, and compare its weights with the recorded ones; with "
            "--clock virtual, also all times. Asynchronous variants with --clock real are not "
            "comparable. Changes no file in DIR. The exit code is not 0 if something differs");
  flags.add("--data", &options->verify.data,
            "where the recorded data set is now, in the form of `syncopate train --data`",
            {.value = "NAME", .default_text = "where it was", .needs = "--verify"});
  flags.add("--archive", &options->archive,
            "pack the comparison into a new file, which contains comparison.json, the runs, the "
            "pages, plots and tables, and a README.txt with the command and the hashes of data set "
            "and network. Makes the report again before that. Requires the program `tar`",
            {.value = "FILE.tar.gz"});
  flags.add("--against", &options->against,
            "do not write the report; instead print samples/s and times to the target of DIR, "
            "divided by those of OTHER, for each variant that both have. Used to check simulated "
            "runs against "
            "real ones. The target of DIR is used for both",
            {.value = "OTHER"});
  flags.add("DIR", &options->verify.dir, "folder that `syncopate-bench compare --report` wrote",
            {.required = true});
  return [options, environment] {
    require_consistent(*options);
    options->verify.dir = without_slash(options->verify.dir);
    const std::filesystem::path& dir = options->verify.dir;
    if (!options->against.empty()) {
      return print_against(std::cout, read_one(dir), read_one(without_slash(options->against)));
    }
    if (!options->archive.empty()) require_new_archive(options->archive);
    if (options->verifies) {
      StopSignal signals;  // is created before any other thread
      verify(options->verify, environment, signals, std::cout);
      if (options->archive.empty()) return;
    }
    report_again(dir, options->explains);
    if (options->archive.empty()) return;
    write_archive(dir, options->archive);
    std::cout << "Archive: " << options->archive.string() << "\n";
  };
}

}  // namespace syncopate::bench
