// syncopate-bench measures the speed of this project, beside another program where one exists. Its
// exit codes are 0 (done), 1 (failed) and 2 (wrong usage).
#include <algorithm>
#include <array>
#include <iostream>

#include "bench/harness/bench_commands.h"
#include "bench/ps/peers/zeromq_peer.h"
#include "bench/ps/ps_side.h"
#include "deploy/cli/flag.h"
#include "deploy/cli/flag_set.h"
#include "deploy/cli/names.h"
#include "deploy/command_process.h"
#include "models/base/errors.h"
#include "models/base/open_files.h"
#include "models/base/process_limits.h"
#include "models/base/standard_streams.h"
#include "worker/run/exit_codes.h"

namespace {

using syncopate::Environment;
using syncopate::FlagSet;
using syncopate::Names;
using syncopate::UsageError;
using syncopate::bench::Command;
using syncopate::bench::CommandRow;

constexpr std::array kCommands = {
    CommandRow{
        "compare",
        "Trains the same network under several strategies and reports which strategy is best.",
        syncopate::bench::declare_compare},
    CommandRow{
        "report",
        "Writes the report of an earlier comparison again, verifies the comparison, or packs it "
        "into an archive.",
        syncopate::bench::declare_report},
    CommandRow{"plan",
               "Predicts the training speed and the staleness of gradients of each strategy on a "
               "cluster that is described by flags.",
               syncopate::bench::declare_plan},
    CommandRow{"step",
               "Measures the time of a training step of syncopate and, for comparison, of PyTorch.",
               syncopate::bench::declare_step},
    CommandRow{"input",
               "Measures how many samples per second the input pipeline delivers without training.",
               syncopate::bench::declare_input},
    CommandRow{"all-reduce",
               "Measures the time of an all-reduce between processes, by syncopate and, for "
               "comparison, by MPI.",
               syncopate::bench::declare_all_reduce},
    CommandRow{
        "ps",
        "Measures the time that a worker takes to push gradients to syncopate's parameter servers "
        "and to pull values. For comparison, it measures messages of the same size over plain "
        "ZeroMQ.",
        syncopate::bench::declare_ps},
    CommandRow{"scaling",
               "Measures the training speed of one replica that uses all threads, and of several "
               "replicas that each use an equal part of the threads.",
               syncopate::bench::declare_scaling},
    CommandRow{"scaling-rank", "", syncopate::bench::declare_scaling_rank},
    CommandRow{"all-reduce-rank", "", syncopate::bench::declare_all_reduce_rank},
    CommandRow{syncopate::bench::kPsRank, "", syncopate::bench::declare_ps_rank},
    CommandRow{syncopate::bench::kPsPeerRank, "", syncopate::bench::declare_ps_peer_rank},
};

Names command_names() {
  Names names;
  for (const CommandRow& row : kCommands) {
    if (!row.help.empty()) names.push_back(row.name);
  }
  return names;
}

std::string usage() {
  constexpr std::size_t kColumn = 14;
  std::string text =
      "Measures the speed of syncopate. Several commands also measure another program for\n"
      "comparison; syncopate and the other program are then measured in turns.\n\n"
      "Usage: syncopate-bench COMMAND [FLAGS]\n\n";
  for (const CommandRow& row : kCommands) {
    if (row.help.empty()) continue;
    std::string name = "  " + std::string(row.name);
    name.resize(kColumn, ' ');
    text += name + syncopate::wrapped(std::string(row.help), kColumn, kColumn) + "\n";
  }
  return text +
         "\n`syncopate-bench COMMAND --help` lists the flags of a command; `syncopate-bench "
         "--version`\nprints the version.\n";
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    std::cerr << usage() << std::flush;
    return syncopate::kExitUsage;
  }
  const std::string& name = arguments.front();
  if (name == "help" && arguments.size() > 1) return run({arguments[1], "--help"});
  if (name == "--help" || name == "-h" || name == "help") {
    std::cout << usage() << std::flush;
    return 0;
  }
  if (name == "--version" || name == "-V") {
    std::cout << "syncopate-bench " << syncopate::program_version() << '\n' << std::flush;
    return 0;
  }
  const auto row = std::ranges::find(kCommands, std::string_view(name), &CommandRow::name);
  if (row == kCommands.end()) {
    throw UsageError("unknown command " + name + syncopate::suggest(name, command_names()));
  }
  FlagSet flags("syncopate-bench " + name, std::string(row->help));
  const Command command = row->declare(flags, Environment::of_process());
  if (const auto help = flags.parse(std::span(arguments).subspan(1))) {
    std::cout << *help << std::flush;
    return 0;
  }
  command();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const syncopate::StandardStreams streams;
  syncopate::raise_open_file_limit();
  syncopate::adapt_to_limited_address_space();
  try {
    const int exit_code = run(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
    if (syncopate::StandardStreams::is_output_complete()) return exit_code;
    return syncopate::report_failure("syncopate-bench", "cannot write to standard output",
                                     syncopate::kExitFailed);
  } catch (...) {
    return syncopate::report_exception("syncopate-bench");
  }
}
