// syncopate-bench ps measures pushes and pulls between workers and parameter servers of this
// machine. Our sides take turns with raw ZeroMQ, raw TCP and copies through shared memory.
#include <memory>

#include "bench/harness/commands.h"
#include "bench/ps/peers/ps_peers.h"
#include "bench/ps/ps.h"
#include "bench/ps/ps_side.h"

namespace syncopate::bench {
namespace {

constexpr double kMost = 1'000'000;
constexpr double kMostTasks = 64;

}  // namespace

Command declare_ps(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<PsOptions>();
  flags.add("--sizes", &options->sizes, "sizes of the model in bytes, such as 64K or 1M",
            {.value = "SIZE,...", .separator = ','});
  flags.add("--message", &options->message, "largest message in bytes", {.value = "SIZE"});
  flags.add("--variable", &options->variable, "size of each of our variables in bytes",
            {.value = "SIZE", .default_text = "one variable"});
  flags.add("--workers", &options->workers, "number of our workers",
            {.least = 1, .most = kMostTasks});
  flags.add("--servers", &options->servers, "number of our servers",
            {.least = 1, .most = kMostTasks});
  flags.add("--transport", &options->transports, "transports of our side",
            {.choices = {"shm", "tcp"}, .separator = ','});
  flags.add("--optimizers", &options->optimizers, "optimizers of our servers: sgd, adam",
            {.value = "NAME,...", .separator = ','});
  flags.add("--consistency", &options->consistency, "consistency rule of our servers",
            {.choices = {"async", "sync"}});
  flags.add("--peers", &options->peers, "other sides: " + ps_peer_names() + " or none",
            {.value = "NAME,...", .default_text = "all", .separator = ','});
  flags.add("--idle", &options->idle_seconds,
            "duration of a measurement of idle servers' CPU time before the rounds; 0: none",
            {.unit = "seconds", .least = 0, .most = 100});
  flags.add("--rounds", &options->rounds, "turns of each side", {.least = 1, .most = kMost});
  flags.add("--turn", &options->seconds_per_turn, "duration of a turn",
            {.unit = "seconds", .above = 0.0});
  flags.add("--json", &options->json_file, "file for the results of every round",
            {.value = "FILE"});
  flags.add("--quick", &options->quick, "2 short rounds, to see that the benchmark runs");
  return [options] { run_ps(*options); };
}

Command declare_ps_rank(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<PsRankOptions>();
  flags.add("--rank", &options->rank, "", {.least = 0, .most = 2 * kMostTasks});
  flags.add("--workers", &options->job.workers, "", {.least = 1, .most = kMostTasks});
  flags.add("--servers", &options->job.servers, "", {.least = 1, .most = kMostTasks});
  const auto transport = std::make_shared<std::string>("shm");
  flags.add("--transport", transport.get(), "", {.choices = {"shm", "tcp"}});
  flags.add("--optimizer", &options->job.optimizer, "");
  flags.add("--consistency", &options->job.consistency, "");
  return [options, transport] {
    options->job.tcp = *transport == "tcp";
    run_ps_rank(*options);
  };
}

}  // namespace syncopate::bench
