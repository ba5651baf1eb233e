#include "bench/ps/ps.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/all_reduce/all_reduce.h"
#include "bench/harness/bench_commands.h"
#include "bench/harness/report.h"
#include "bench/ps/peers/zeromq_peer.h"
#include "bench/ps/ps_side.h"
#include "models/base/errors.h"
#include "models/base/own_program.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

std::vector<Contestant> start(const PsOptions& options) {
  const std::string program = own_program().string();
  std::vector<ContestSide> sides = own_ps_sides(options, program);
  if (options.peer != "none") {
    try {
      sides.push_back(zeromq_side(program));
    } catch (const UnavailableError& error) {
      if (!options.peer.empty()) throw;
      std::cout << "without " << kZeroMqPeer << ": " << error.what() << "\n";
    }
  }
  std::vector<Contestant> contestants = start_contest(std::move(sides), std::cout);
  std::cout << std::endl;
  return contestants;
}

void report_idle(const PsOptions& options, std::vector<Contestant>& contestants) {
  for (Contestant& one : contestants) {
    if (!one.side().ours) continue;
    std::cout << one.side().name << ": CPU of an idle server in " << options.idle_seconds << " s:";
    for (const double seconds :
         one.ask(fmt::format("idle {}", options.idle_seconds), options.servers)) {
      std::cout << " " << number_text(1e3 * seconds) << " ms";
    }
    std::cout << std::endl;
  }
}

constexpr double kMostTasks = 64;

}  // namespace

std::vector<ContestSide> own_ps_sides(const PsOptions& options, const std::string& program) {
  std::vector<PsJobOptions> jobs;
  for (const std::string& transport : options.transports) {
    for (const std::string& optimizer : options.optimizers) {
      for (const std::string& compression : options.compressions) {
        jobs.push_back({.workers = options.workers,
                        .servers = options.servers,
                        .tcp = transport == "tcp",
                        .optimizer = optimizer,
                        .compression = compression,
                        .consistency = options.consistency});
      }
    }
  }
  std::vector<ContestSide> sides;
  for (const PsJobOptions& job : jobs) {
    ContestSide side{.name = fmt::format("ours, {}, {}", job.tcp ? "tcp" : "shm", job.optimizer),
                     .ours = true,
                     .tcp = job.tcp,
                     .workers = job.workers,
                     .command = ps_rank_arguments(job)};
    if (job.compression != "none") side.name += ", " + job.compression;
    side.command.insert(side.command.begin(), program);
    sides.push_back(std::move(side));
  }
  return sides;
}

void run_ps(PsOptions options) {
  require_writable(options.json_file);
  if (options.quick) {
    options.rounds = std::min(options.rounds, 2);
    options.seconds_per_turn = 0.05;
  }
  std::vector<ExchangeShape> shapes;
  for (const std::string& size : options.sizes) {
    ExchangeShape shape;
    shape.bytes = static_cast<std::size_t>(parse_size_bytes(size));
    shape.message_bytes = static_cast<std::size_t>(parse_size_bytes(options.message));
    if (!options.variable.empty()) {
      shape.variable_bytes = static_cast<std::size_t>(parse_size_bytes(options.variable));
    }
    shapes.push_back(shape);
  }
  if (shapes.empty()) throw UsageError("--sizes: at least one");
  std::vector<Contestant> contestants = start(options);
  if (options.idle_seconds > 0) report_idle(options, contestants);
  json document = json::array();
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const Rounds rounds =
        take_exchange_rounds(contestants, shapes[s], options.rounds, options.seconds_per_turn);
    std::cout << exchange_table(options.sizes[s], shapes[s], contestants, rounds) << std::endl;
    document.push_back(exchange_json(shapes[s], contestants, rounds));
  }
  if (!options.json_file.empty()) write_report(options.json_file, document.dump(2));
}

Command declare_ps(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<PsOptions>();
  flags.add("--sizes", &options->sizes, "sizes of the model in bytes, such as 64K or 1M",
            {.value = "SIZE,...", .separator = ','});
  flags.add("--message", &options->message, "largest size of a message in bytes, such as 64K or 1M",
            {.value = "SIZE"});
  flags.add("--variable", &options->variable,
            "size in bytes of the variables into which syncopate divides the model",
            {.value = "SIZE", .default_text = "the model is one variable"});
  flags.add("--workers", &options->workers,
            "number of syncopate's workers; the program that --peers names always has one worker",
            {.least = 1, .most = kMostTasks});
  flags.add("--servers", &options->servers,
            "number of syncopate's servers; the program that --peers names always has one server",
            {.least = 1, .most = kMostTasks});
  flags.add("--transport", &options->transports,
            "transports of syncopate to measure (shm: shared memory; tcp: TCP sockets)",
            {.choices = {"shm", "tcp"}, .separator = ','});
  flags.add("--optimizers", &options->optimizers,
            "optimizers to measure (on the servers of syncopate)",
            {.choices = {"sgd", "adam"}, .separator = ','});
  flags.add("--compress", &options->compressions,
            "ways to compress the gradients that syncopate's workers push; each way is measured",
            {.choices = {"none", "bf16"}, .separator = ','});
  flags.add("--consistency", &options->consistency, "consistency rule of the servers of syncopate",
            {.choices = {"async", "sync"}});
  flags.add("--peers", &options->peer,
            "program to measure for comparison (zmq: messages over plain ZeroMQ)",
            {.default_text = "zmq if this build has it", .choices = {kZeroMqPeer, "none"}});
  flags.add("--idle", &options->idle_seconds,
            "duration of a measurement of the CPU time of idle servers, before the rounds; 0: no "
            "such measurement",
            {.unit = "seconds", .least = 0, .most = 100});
  flags.add("--rounds", &options->rounds,
            "number of rounds; each round measures syncopate, then the program of --peers",
            {.least = 1, .most = kMostCount});
  flags.add(
      "--turn", &options->seconds_per_turn,
      "duration of each measurement in a round (equal for syncopate and the program of --peers)",
      {.unit = "seconds", .above = 0.0});
  flags.add("--json", &options->json_file, "JSON file for the results of every round",
            {.value = "FILE"});
  flags.add("--quick", &options->quick,
            "run at most 2 short rounds, only to check that the benchmark works");
  return [options] { run_ps(*options); };
}

}  // namespace syncopate::bench
