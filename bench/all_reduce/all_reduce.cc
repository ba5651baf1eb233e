#include "bench/all_reduce/all_reduce.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "bench/all_reduce/all_reduce_sides.h"
#include "bench/harness/measure.h"
#include "bench/harness/peer.h"
#include "bench/harness/report.h"
#include "bench/harness/rounds.h"
#include "models/base/errors.h"

namespace syncopate::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr int kTrialCalls = 3;
constexpr int kFewestCalls = 3;
constexpr int kMostCalls = 5000;

// Holds the processes of one side and its times at the current size.
struct Contestant {
  AllReduceSide side;
  std::unique_ptr<Peer> peer;
  int calls_per_turn = 0;
  std::string algorithm;
  std::vector<std::vector<double>> seconds;  // The index order is [round][call].

  double take_turn(std::int64_t bytes) {
    const PeerAnswer answer = ask(bytes, calls_per_turn);
    algorithm = json::parse(answer.text).value("algorithm", "");
    seconds.push_back(answer.seconds);
    return median(answer.seconds);
  }

  // Finds the number of calls that fill a turn, including inputs, start and check.
  void prepare(std::int64_t bytes, double seconds_per_turn) {
    seconds.clear();
    ask(bytes, 1);  // The first call chooses the algorithm and touches its memory.
    const Clock::time_point start = Clock::now();
    ask(bytes, kTrialCalls);
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    const double calls = seconds_per_turn / passed * (kTrialCalls + 1);
    calls_per_turn = static_cast<int>(std::clamp<double>(calls, kFewestCalls, kMostCalls));
  }

  double p99_seconds(std::span<const std::size_t> rounds) const {
    std::vector<double> all;
    for (const std::size_t round : rounds) {
      all.insert(all.end(), seconds[round].begin(), seconds[round].end());
    }
    return percentile(all, 0.99);
  }

 private:
  PeerAnswer ask(std::int64_t bytes, int calls) {
    return peer->ask("run " + std::to_string(bytes) + " " + std::to_string(calls), calls);
  }
};

std::vector<pid_t> all_pids(const std::vector<Contestant>& contestants) {
  std::set<pid_t> pids;
  for (const Contestant& one : contestants) {
    pids.insert(one.peer->pid());
    for (const json& pid : json::parse(one.peer->settings()).value("pids", json::array())) {
      pids.insert(pid.get<pid_t>());
    }
  }
  return {pids.begin(), pids.end()};
}

// Finds the fastest peer to compare `ours` with. A side over TCP is compared only with peers over
// TCP.
std::optional<std::size_t> best_peer(const std::vector<Contestant>& contestants,
                                     const AllReduceSide& ours, const Rounds& rounds) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const AllReduceSide& side = contestants[i].side;
    if (side.ours || (ours.tcp && !side.tcp)) continue;
    if (!best || median(rounds.counted(i)) < median(rounds.counted(*best))) best = i;
  }
  return best;
}

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
      table.push_back({one.side.name, spread_text(spread_of(seconds), 1e6),
                       number_text(1e6 * one.p99_seconds(quiet_rounds(rounds.foreign))),
                       number_text(gb_per_s), number_text(gb_per_s * bus_factor(ranks_)),
                       std::to_string(one.calls_per_turn), one.algorithm, ratio_cell(i, rounds)});
    }
    std::cout << format_table(table) << describe_conditions(rounds) << std::endl;
  }

  json to_json(std::int64_t bytes, const Rounds& rounds) const {
    json document = {{"bytes", bytes},
                     {"ranks", ranks_},
                     {"quiet", is_quiet(rounds.foreign)},
                     {"foreign_load_per_round", rounds.foreign},
                     {"core_ring_gb_per_s_per_round", rounds.ring_gb_per_s},
                     {"sides", json::array()}};
    for (std::size_t i = 0; i < contestants_.size(); ++i) {
      const Contestant& one = contestants_[i];
      const double seconds = median(rounds.counted(i));
      json side = {
          {"name", one.side.name},
          {"description", one.peer->description()},
          {"algorithm", one.algorithm},
          {"seconds", seconds},
          {"seconds_per_round", rounds.sides[i]},
          {"seconds_p99", one.p99_seconds(quiet_rounds(rounds.foreign))},
          {"calls_per_round", one.calls_per_turn},
          {"bytes_per_second", static_cast<double>(bytes) / seconds},
          {"bus_bytes_per_second", static_cast<double>(bytes) / seconds * bus_factor(ranks_)}};
      if (const auto best = one.side.ours ? best_peer(contestants_, one.side, rounds)
                                          : std::optional<std::size_t>()) {
        const Spread ratio = ratio_of(rounds.counted(*best), rounds.counted(i));
        side["best_peer"] = contestants_[*best].side.name;
        side["ratio"] = {{"median", ratio.median}, {"min", ratio.min}, {"max", ratio.max}};
      }
      document["sides"].push_back(side);
    }
    return document;
  }

 private:
  std::string ratio_cell(std::size_t i, const Rounds& rounds) const {
    if (!contestants_[i].side.ours) return "";
    const std::optional<std::size_t> best = best_peer(contestants_, contestants_[i].side, rounds);
    if (!best) return "no peer";
    return spread_text(ratio_of(rounds.counted(*best), rounds.counted(i))) + " x " +
           contestants_[*best].side.name + (is_quiet(rounds.foreign) ? "" : " NOT QUIET");
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
  std::vector<Contestant> contestants;
  for (const AllReduceSide& side : sides.sides) {
    Contestant one;
    one.side = side;
    one.peer = std::make_unique<Peer>(PeerOptions{.command = side.command});
    contestants.push_back(std::move(one));
    std::cout << side.name << ": " << contestants.back().peer->description() << '\n';
  }
  for (const std::string& line : sides.absent) std::cout << "without " << line << '\n';
  std::cout << "TCP congestion control of the system: " << congestion_control()
            << "; ours and gloo-reno use reno\n"
            << std::endl;
  return contestants;
}

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
    std::vector<Turn> turns;
    for (Contestant& one : contestants) {
      one.prepare(sizes[s], options.seconds_per_turn);
      turns.emplace_back([&one, bytes = sizes[s]] { return one.take_turn(bytes); });
    }
    const Rounds rounds = take_rounds(options.rounds, turns, all_pids(contestants));
    report.print(options.sizes[s], sizes[s], rounds);
    document.push_back(report.to_json(sizes[s], rounds));
  }
  if (!options.json_file.empty()) write_report(options.json_file, document.dump(2));
}

}  // namespace syncopate::bench
