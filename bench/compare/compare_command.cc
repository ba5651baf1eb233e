// syncopate-bench compare and report: the same training under several strategies, with and without
// trouble.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "bench/compare/compare.h"
#include "bench/compare/compare_flags.h"
#include "bench/compare/report/comparison.h"
#include "bench/harness/commands.h"
#include "bench/harness/report.h"

namespace syncopate::bench {

Command declare_compare(CLI::App& app, const Environment& environment) {
  const auto flags = std::make_shared<CompareFlags>(app);
  const auto record = std::make_shared<std::filesystem::path>();
  app.add_option("--replay", *record,
                 "instead: compute again, bit for bit, what train --record FILE wrote down; with "
                 "--data");
  return [flags, record, environment] {
    if (!record->empty()) return replay(*record, flags->options(environment), std::cout);
    StopSignal signals;  // before any other thread
    compare(flags->options(environment), command_line(), signals, std::cout);
  };
}

Command declare_report(CLI::App& app, const Environment& /*environment*/) {
  const auto dir = std::make_shared<std::filesystem::path>();
  app.add_option("DIR", *dir, "a folder that compare has written")->required();
  return [dir] { tell(*dir, read_comparison(*dir), std::cout); };
}

}  // namespace syncopate::bench
