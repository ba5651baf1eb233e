// syncopate-bench ps: pushes and pulls between workers and parameter servers of this machine,
// beside raw ZeroMQ, TCP and copies through shared memory, which take turns.
#include <CLI/CLI.hpp>
#include <memory>

#include "bench/harness/commands.h"
#include "bench/ps/peers/ps_peers.h"
#include "bench/ps/ps.h"
#include "bench/ps/ps_side.h"

namespace syncopate::bench {
namespace {

constexpr int kMost = 1'000'000;  // of anything one can ask for
constexpr int kMostTasks = 64;

}  // namespace

Command declare_ps(CLI::App& app, const Environment& /*environment*/) {
  const auto options = std::make_shared<PsOptions>();
  app.add_option("--sizes", options->sizes, "of the model, in bytes, separated by commas")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--message", options->message, "at most so many bytes in one message")
      ->capture_default_str();
  app.add_option("--variable", options->variable,
                 "bytes of each variable of ours (one variable for all)");
  app.add_option("--workers", options->workers, "of ours")
      ->check(CLI::Range(1, kMostTasks))
      ->capture_default_str();
  app.add_option("--servers", options->servers, "of ours")
      ->check(CLI::Range(1, kMostTasks))
      ->capture_default_str();
  app.add_option("--transport", options->transports, "of ours: shm, tcp or both")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--optimizers", options->optimizers, "on our servers: sgd, adam or both")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--consistency", options->consistency, "of ours: async or sync")
      ->capture_default_str();
  app.add_option("--peers", options->peers, ps_peer_names() + " or none (all)")->delimiter(',');
  app.add_option("--idle", options->idle_seconds,
                 "first, the CPU time of servers to whom nobody speaks for so many seconds")
      ->check(CLI::Range(0, 100));
  app.add_option("--rounds", options->rounds, "turns of each side")
      ->check(CLI::Range(1, kMost))
      ->capture_default_str();
  app.add_option("--turn", options->seconds_per_turn, "seconds of a turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--json", options->json_file, "write the results, round by round, to this file");
  app.add_flag("--quick", options->quick, "2 short rounds: does it run, not how fast");
  return [options] { run_ps(*options); };
}

Command declare_ps_rank(CLI::App& app, const Environment& /*environment*/) {
  const auto options = std::make_shared<PsRankOptions>();
  app.add_option("--rank", options->rank)->check(CLI::Range(0, 2 * kMostTasks));
  app.add_option("--workers", options->job.workers)->check(CLI::Range(1, kMostTasks));
  app.add_option("--servers", options->job.servers)->check(CLI::Range(1, kMostTasks));
  const auto transport = std::make_shared<std::string>("shm");
  app.add_option("--transport", *transport)->check(CLI::IsMember({"shm", "tcp"}));
  app.add_option("--optimizer", options->job.optimizer);
  app.add_option("--consistency", options->job.consistency);
  return [options, transport] {
    options->job.tcp = *transport == "tcp";
    run_ps_rank(*options);
  };
}

}  // namespace syncopate::bench
