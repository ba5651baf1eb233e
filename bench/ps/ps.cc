#include "bench/ps/ps.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/all_reduce/all_reduce.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/ps/peers/ps_peers.h"
#include "bench/ps/ps_side.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

void require_one_of(const std::string& flag, const std::string& found,
                    const std::vector<std::string>& known) {
  if (std::ranges::find(known, found) != known.end()) return;
  std::string names;
  for (const std::string& name : known) names.append(names.empty() ? "" : ", ").append(name);
  throw UsageError(std::string(flag).append(" ").append(found).append(": choose from ") + names);
}

std::vector<ExchangeContestant> start(const PsOptions& options) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<ExchangeSide> sides = own_ps_sides(options, program);
  if (options.peers != std::vector<std::string>{"none"}) {
    std::ranges::move(find_ps_peers(options.peers, program), std::back_inserter(sides));
  }
  std::vector<ExchangeContestant> contestants;
  for (ExchangeSide& side : sides) {
    contestants.emplace_back(std::move(side));
    const ExchangeContestant& one = contestants.back();
    std::cout << one.side().name << ": " << one.description() << "\n";
  }
  std::cout << std::endl;
  return contestants;
}

void report_idle(const PsOptions& options, std::vector<ExchangeContestant>& contestants) {
  for (ExchangeContestant& one : contestants) {
    if (!one.side().ours) continue;
    std::cout << one.side().name << ": CPU of an idle server in " << options.idle_seconds << " s:";
    for (const double seconds : one.idle(options.idle_seconds, options.servers)) {
      std::cout << " " << number_text(1e3 * seconds) << " ms";
    }
    std::cout << std::endl;
  }
}

}  // namespace

std::vector<ExchangeSide> own_ps_sides(const PsOptions& options, const std::string& program) {
  require_one_of("--consistency", options.consistency, {"sync", "async"});
  std::vector<ExchangeSide> sides;
  for (const std::string& transport : options.transports) {
    require_one_of("--transport", transport, {"shm", "tcp"});
    for (const std::string& optimizer : options.optimizers) {
      require_one_of("--optimizers", optimizer, {"sgd", "adam"});
      ExchangeSide side{.name = "ours, " + transport + ", " + optimizer,
                        .ours = true,
                        .tcp = transport == "tcp",
                        .workers = options.workers,
                        .command = ps_rank_arguments({.workers = options.workers,
                                                      .servers = options.servers,
                                                      .tcp = transport == "tcp",
                                                      .optimizer = optimizer,
                                                      .consistency = options.consistency})};
      side.command.insert(side.command.begin(), program);
      sides.push_back(std::move(side));
    }
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
  std::vector<ExchangeContestant> contestants = start(options);
  if (options.idle_seconds > 0) report_idle(options, contestants);
  json document = json::array();
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const Rounds rounds =
        take_exchange_rounds(contestants, shapes[s], options.rounds, options.seconds_per_turn);
    std::cout << exchange_table(options.sizes[s], shapes[s], contestants, rounds) << std::endl;
    document.push_back(json::parse(exchange_json(shapes[s], contestants, rounds)));
  }
  if (!options.json_file.empty()) write_report(options.json_file, document.dump(2));
}

}  // namespace syncopate::bench
