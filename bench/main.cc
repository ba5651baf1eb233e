// syncopate-bench: measures, beside a peer where there is one, and says how sure it is.
// Exit codes: 0 done, 1 failed, 2 wrong usage.
#include <CLI/CLI.hpp>
#include <array>
#include <exception>
#include <iostream>

#include "bench/harness/commands.h"
#include "bench/ps/peers/command.h"
#include "bench/ps/peers/ps_peers.h"
#include "bench/ps/ps_side.h"
#include "models/base/errors.h"

namespace {

using syncopate::Environment;
using syncopate::bench::Command;
using syncopate::bench::CommandRow;

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

constexpr std::array kCommands = {
    CommandRow{"compare", "the same training under several strategies: which one, and why",
               syncopate::bench::declare_compare},
    CommandRow{"report", "draws the report of a comparison again",
               syncopate::bench::declare_report},
    CommandRow{"plan", "predicts speed and staleness on a cluster that is not here",
               syncopate::bench::declare_plan},
    CommandRow{"step", "one training step, beside PyTorch", syncopate::bench::declare_step},
    CommandRow{"input", "samples per second of the input pipeline alone",
               syncopate::bench::declare_input},
    CommandRow{"all-reduce", "sums between processes, beside MPI and Gloo",
               syncopate::bench::declare_all_reduce},
    CommandRow{"ps", "parameter servers, beside raw ZeroMQ, TCP and shared memory",
               syncopate::bench::declare_ps},
    CommandRow{"scaling", "one replica with all threads, beside several that share them",
               syncopate::bench::declare_scaling},
    CommandRow{"scaling-rank", "", syncopate::bench::declare_scaling_rank},
    CommandRow{"all-reduce-rank", "", syncopate::bench::declare_all_reduce_rank},
    CommandRow{syncopate::bench::kPsRank, "", syncopate::bench::declare_ps_rank},
    CommandRow{syncopate::bench::kPsPeerRank, "", syncopate::bench::declare_ps_peer_rank},
};

int complain(const std::exception& error, int exit_code) {
  std::cerr << "syncopate-bench: " << error.what() << std::endl;
  return exit_code;
}

int run(int argc, char** argv) {
  const Environment environment = Environment::of_process();
  CLI::App app("Measures syncopate; both sides of a comparison take turns in one run.",
               "syncopate-bench");
  app.require_subcommand(1);
  Command chosen;
  for (const CommandRow& row : kCommands) {
    CLI::App* options = app.add_subcommand(std::string(row.name), std::string(row.help));
    if (row.help.empty()) options->group("");
    options->callback(
        [&chosen, command = row.declare(*options, environment)] { chosen = command; });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    return complain(error, kWrongUsage);
  }
  chosen();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const syncopate::UsageError& error) {
    return complain(error, kWrongUsage);
  } catch (const syncopate::UnavailableError& error) {
    return complain(error, kWrongUsage);
  } catch (const std::exception& error) {
    return complain(error, kFailed);
  }
}
