// syncopate-bench compare and report train one network under several strategies, with and without
// fault injection, and report the comparison.
#include <filesystem>
#include <iostream>
#include <memory>

#include "bench/compare/compare.h"
#include "bench/compare/compare_flags.h"
#include "bench/compare/report/comparison.h"
#include "bench/harness/commands.h"
#include "bench/harness/report.h"

namespace syncopate::bench {

Command declare_compare(FlagSet& flags, const Environment& environment) {
  const auto words = std::make_shared<CompareFlags>(flags);
  const auto record = std::make_shared<std::filesystem::path>();
  flags.add("--replay", record.get(),
            "file of train --record whose updates are computed again, bit for bit, in place of a "
            "comparison; with --data",
            {.value = "FILE"});
  return [words, record, environment] {
    if (!record->empty()) return replay(*record, words->options(environment), std::cout);
    StopSignal signals;  // Is created before any other thread.
    compare(words->options(environment), command_line(), signals, std::cout);
  };
}

Command declare_report(FlagSet& flags, const Environment& /*environment*/) {
  const auto dir = std::make_shared<std::filesystem::path>();
  flags.add("DIR", dir.get(), "folder of --report that compare has written", {.required = true});
  return [dir] { write_and_print_report(*dir, read_comparison(*dir), std::cout); };
}

}  // namespace syncopate::bench
