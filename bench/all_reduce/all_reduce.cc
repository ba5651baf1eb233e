#include "bench/all_reduce/all_reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/all_reduce/all_reduce_sides.h"
#include "bench/harness/bench_commands.h"
#include "bench/harness/contest.h"
#include "bench/harness/measure.h"
#include "bench/harness/report.h"
#include "bench/harness/rounds.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

class Report {
 public:
  Report(const std::vector<Contestant>& contestants, int ranks)
      : contestants_(contestants), ranks_(ranks) {}

  void print(const std::string& size, std::int64_t bytes, const Rounds& rounds) const {
    std::vector<std::vector<std::string>> table = {{size, "median us [min-max]", "p99 us", "GB/s",
                                                    "bus GB/s", "calls", "algorithm",
                                                    "best peer / ours [min-max]"}};
    for (std::size_t i = 0; i < contestants_.size(); ++i) {
      const Contestant& one = contestants_[i];
      const std::vector<double> seconds = rounds.counted(i);
      const double gb_per_s = 1e-9 * static_cast<double>(bytes) / median(seconds);
      table.push_back({one.side().name, spread_text(spread_of(seconds), 1e6),
                       number_text(1e6 * one.percentile_seconds(0.99, rounds)),
                       number_text(gb_per_s), number_text(gb_per_s * bus_factor(ranks_)),
                       std::to_string(one.calls_per_turn()), algorithm_of(one),
                       ratio_cell(contestants_, i, rounds)});
    }
    std::cout << format_table(table) << describe_conditions(rounds) << std::endl;
  }

  json to_json(std::int64_t bytes, const Rounds& rounds) const {
    json document = {{"bytes", bytes}, {"ranks", ranks_}, {"sides", json::array()}};
    document.update(conditions_json(rounds));
    for (std::size_t i = 0; i < contestants_.size(); ++i) {
      json side = contestant_json(contestants_, i, rounds);
      const double bytes_per_second = static_cast<double>(bytes) / side["seconds"].get<double>();
      side.update({{"algorithm", algorithm_of(contestants_[i])},
                   {"calls_per_round", contestants_[i].calls_per_turn()},
                   {"bytes_per_second", bytes_per_second},
                   {"bus_bytes_per_second", bytes_per_second * bus_factor(ranks_)}});
      document["sides"].push_back(side);
    }
    return document;
  }

 private:
  static std::string algorithm_of(const Contestant& one) {
    return json::parse(one.last_answer()).value("algorithm", "");
  }

  const std::vector<Contestant>& contestants_;
  int ranks_;
};

std::string congestion_control() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name;
  file >> name;
  return name.empty() ? "unknown" : name;
}

std::vector<Contestant> start(const AllReduceSides& sides) {
  std::vector<Contestant> contestants = start_contest(sides.sides, std::cout);
  for (const std::string& line : sides.absent) std::cout << "without " << line << '\n';
  std::cout << "TCP congestion control of the system: " << congestion_control()
            << "; the sides over TCP use reno\n"
            << std::endl;
  return contestants;
}

constexpr double kMostRanks = 64;

}  // namespace

double bus_factor(int ranks) noexcept { return 2.0 * (ranks - 1) / ranks; }

std::int64_t parse_size_bytes(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  int shift = 0;
  if (suffix == "K") shift = 10;
  if (suffix == "M") shift = 20;
  if (suffix == "G") shift = 30;
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  const bool known = suffix.empty() || shift > 0;
  if (error != std::errc() || !known || number < 1 || number > (kMost >> shift) ||
      (number << shift) % static_cast<std::int64_t>(sizeof(float)) != 0) {
    throw UsageError("--sizes " + std::string(text) +
                     ": expected bytes of whole f32, as 4096, 64K or 16M, at most 4G");
  }
  return number << shift;
}

void run_all_reduce(AllReduceOptions options) {
  require_writable(options.json_file);
  if (options.quick) {
    options.rounds = std::min(options.rounds, 2);
    options.seconds_per_turn = 0.05;
  }
  std::vector<std::int64_t> sizes;
  for (const std::string& size : options.sizes) sizes.push_back(parse_size_bytes(size));
  if (sizes.empty()) throw UsageError("--sizes: at least one");
  const std::int64_t largest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<Contestant> contestants = start(find_all_reduce_sides(options, largest));
  const Report report(contestants, options.ranks);
  json document = json::array();
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    const ContestTask task{.command = [bytes = sizes[s]](int calls) {
      return fmt::format("run {} {}", bytes, calls);
    }};
    const Rounds rounds =
        take_contest_rounds(contestants, task, options.rounds, options.seconds_per_turn);
    report.print(options.sizes[s], sizes[s], rounds);
    document.push_back(report.to_json(sizes[s], rounds));
  }
  if (!options.json_file.empty()) write_report(options.json_file, document.dump(2));
}

Command declare_all_reduce(FlagSet& flags, const Environment& /*environment*/) {
  const auto options = std::make_shared<AllReduceOptions>();
  flags.add("--ranks", &options->ranks, "number of processes, the same for syncopate and for MPI",
            {.least = 2, .most = kMostRanks});
  flags.add("--sizes", &options->sizes,
            "sizes in bytes of the f32 tensor to reduce, such as 64K or 1M",
            {.value = "SIZE,...", .separator = ','});
  flags.add("--transport", &options->transports,
            "transports of syncopate to measure (shm: shared memory; tcp: TCP sockets)",
            {.choices = {"shm", "tcp"}, .separator = ','});
  flags.add("--peers", &options->peers,
            "programs to measure for comparison (mpi: MPI over shared memory; mpi-tcp: MPI over "
            "TCP; mpi-jemalloc: as mpi, with the allocator jemalloc preloaded)",
            {.default_text = "mpi,mpi-tcp if this build has MPI",
             .choices = all_reduce_peers(),
             .separator = ','});
  flags.add("--mpi-jemalloc", &options->mpi_jemalloc,
            "add mpi-jemalloc to the programs of --peers");
  flags.add("--rounds", &options->rounds,
            "number of rounds; each round measures syncopate with each transport, then each "
            "program of --peers",
            {.least = 1, .most = kMostCount});
  flags.add("--json", &options->json_file, "JSON file for the results of every round",
            {.value = "FILE"});
  flags.add("--quick", &options->quick,
            "run at most 2 short rounds, only to check that the benchmark works");
  return [options] { run_all_reduce(*options); };
}

}  // namespace syncopate::bench
