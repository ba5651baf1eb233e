// syncopate-bench compare and report train one network under several strategies, with and without
// fault injection, and report the comparison.
#include <filesystem>
#include <iostream>
#include <memory>

#include "bench/compare/compare.h"
#include "bench/compare/compare_flags.h"
#include "bench/compare/comparison_file.h"
#include "bench/compare/map_file.h"
#include "bench/compare/printed_report.h"
#include "bench/compare/report/comparison.h"
#include "bench/harness/bench_commands.h"
#include "bench/harness/report.h"
#include "deploy/cli/command_line.h"
#include "deploy/cli/flag_set.h"

namespace syncopate::bench {

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
    compare(words->options(environment), command_line(), signals, std::cout);
  };
}

Command declare_report(FlagSet& flags, const Environment& /*environment*/) {
  const auto dir = std::make_shared<std::filesystem::path>();
  const auto explains = std::make_shared<bool>(false);
  flags.add("--explain", explains.get(),
            "before the recommendation, print the results, tests, warnings and conditions of the "
            "comparison");
  flags.add("DIR", dir.get(), "folder that `syncopate-bench compare --report` wrote",
            {.required = true});
  return [dir, explains] {
    if (has_map(*dir)) {
      for (const std::string& cluster : clusters_in(*dir)) {
        restore_comparison_file(*dir / cluster, std::cout);
      }
      return write_and_print_map(*dir, *explains, std::cout);
    }
    restore_comparison_file(*dir, std::cout);
    write_and_print_report(*dir, read_comparison(*dir), *explains, std::cout);
  };
}

}  // namespace syncopate::bench
