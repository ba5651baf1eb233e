#include "bench/ps/peers/contest.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "bench/harness/measure.h"
#include "bench/harness/report.h"

namespace syncopate::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr int kTrialExchanges = 3;
constexpr int kFewestExchanges = 3;
constexpr int kMostExchanges = 20'000;

// Finds the fastest peer to compare `ours` with. A side over TCP is compared only with peers over
// TCP.
std::optional<std::size_t> best_peer(const std::vector<ExchangeContestant>& contestants,
                                     const ExchangeSide& ours, const Rounds& rounds) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const ExchangeSide& side = contestants[i].side();
    if (side.ours || (ours.tcp && !side.tcp)) continue;
    if (!best || median(rounds.counted(i)) < median(rounds.counted(*best))) best = i;
  }
  return best;
}

// Returns the peer's time divided by ours, per byte. In the time of one exchange, every worker of
// our side moves the bytes of one.
Spread ratio_to(std::size_t peer, std::size_t ours,
                const std::vector<ExchangeContestant>& contestants, const Rounds& rounds) {
  const Spread ratio = ratio_of(rounds.counted(peer), rounds.counted(ours));
  const auto workers = static_cast<double>(contestants[ours].side().workers);
  return {ratio.median * workers, ratio.min * workers, ratio.max * workers};
}

double units_of(const ExchangeShape& shape) {
  const std::size_t unit = shape.variable_bytes > 0 ? shape.variable_bytes : shape.message_bytes;
  return std::max(1.0, static_cast<double>(shape.bytes) / static_cast<double>(unit));
}

std::string ratio_cell(const std::vector<ExchangeContestant>& contestants, std::size_t i,
                       const Rounds& rounds) {
  if (!contestants[i].side().ours) return "";
  const std::optional<std::size_t> best = best_peer(contestants, contestants[i].side(), rounds);
  if (!best) return "no peer";
  return spread_text(ratio_to(*best, i, contestants, rounds)) + " x " +
         contestants[*best].side().name + (is_quiet(rounds.foreign) ? "" : " NOT QUIET");
}

}  // namespace

ExchangeContestant::ExchangeContestant(ExchangeSide side)
    : side_(std::move(side)),
      peer_(std::make_unique<Peer>(PeerOptions{.command = side_.command})) {}

std::vector<pid_t> ExchangeContestant::pids() const {
  std::set<pid_t> pids = {peer_->pid()};
  for (const json& pid : json::parse(peer_->settings()).value("pids", json::array())) {
    pids.insert(pid.get<pid_t>());
  }
  return {pids.begin(), pids.end()};
}

std::vector<double> ExchangeContestant::ask(int exchanges) {
  return peer_->ask(exchange_command(shape_, exchanges), exchanges * side_.workers).seconds;
}

std::vector<double> ExchangeContestant::idle(int seconds, int servers) {
  return peer_->ask("idle " + std::to_string(seconds), servers).seconds;
}

void ExchangeContestant::prepare(const ExchangeShape& shape, double seconds_per_turn) {
  shape_ = shape;
  seconds_.clear();
  ask(1);  // The first exchange touches the memory.
  const Clock::time_point start = Clock::now();
  ask(kTrialExchanges);
  const double passed = std::chrono::duration<double>(Clock::now() - start).count();
  // Each command adds one uncounted exchange before the measured ones and one checked exchange
  // after them.
  const double fitting = seconds_per_turn / passed * (kTrialExchanges + 2);
  exchanges_per_turn_ =
      static_cast<int>(std::clamp<double>(fitting, kFewestExchanges, kMostExchanges));
}

double ExchangeContestant::take_turn() {
  seconds_.push_back(ask(exchanges_per_turn_));
  return median(seconds_.back());
}

double ExchangeContestant::percentile_seconds(double share,
                                              std::span<const std::size_t> rounds) const {
  std::vector<double> all;
  for (const std::size_t round : rounds) {
    all.insert(all.end(), seconds_.at(round).begin(), seconds_.at(round).end());
  }
  return percentile(all, share);
}

Rounds take_exchange_rounds(std::vector<ExchangeContestant>& contestants,
                            const ExchangeShape& shape, int rounds, double seconds_per_turn) {
  std::vector<Turn> turns;
  std::vector<pid_t> pids;
  for (ExchangeContestant& one : contestants) {
    one.prepare(shape, seconds_per_turn);
    turns.emplace_back([&one] { return one.take_turn(); });
    const std::vector<pid_t> its = one.pids();
    pids.insert(pids.end(), its.begin(), its.end());
  }
  return take_rounds(rounds, turns, pids);
}

std::string exchange_table(const std::string& size, const ExchangeShape& shape,
                           const std::vector<ExchangeContestant>& contestants,
                           const Rounds& rounds) {
  const std::vector<std::size_t> counting = quiet_rounds(rounds.foreign);
  std::vector<std::vector<std::string>> table = {
      {size, "median us [min-max]", "p50 us", "p99 us", "GB/s each way",
       shape.variable_bytes > 0 ? "variables/s" : "messages/s", "exchanges",
       "best peer / ours [min-max]"}};
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const ExchangeContestant& one = contestants[i];
    const std::vector<double> seconds = rounds.counted(i);
    const double per_second = one.side().workers / median(seconds);
    table.push_back({one.side().name, spread_text(spread_of(seconds), 1e6),
                     number_text(1e6 * one.percentile_seconds(0.5, counting)),
                     number_text(1e6 * one.percentile_seconds(0.99, counting)),
                     number_text(1e-9 * static_cast<double>(shape.bytes) * per_second),
                     number_text(units_of(shape) * per_second),
                     std::to_string(one.exchanges_per_turn()), ratio_cell(contestants, i, rounds)});
  }
  return format_table(table) + describe_conditions(rounds);
}

std::string exchange_json(const ExchangeShape& shape,
                          const std::vector<ExchangeContestant>& contestants,
                          const Rounds& rounds) {
  const std::vector<std::size_t> counting = quiet_rounds(rounds.foreign);
  json document = {{"bytes", shape.bytes},
                   {"message_bytes", shape.message_bytes},
                   {"variable_bytes", shape.variable_bytes},
                   {"quiet", is_quiet(rounds.foreign)},
                   {"foreign_load_per_round", rounds.foreign},
                   {"core_ring_gb_per_s_per_round", rounds.ring_gb_per_s},
                   {"sides", json::array()}};
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const ExchangeContestant& one = contestants[i];
    const double seconds = median(rounds.counted(i));
    json side = {{"name", one.side().name},
                 {"description", one.description()},
                 {"seconds", seconds},
                 {"seconds_per_round", rounds.sides[i]},
                 {"seconds_p50", one.percentile_seconds(0.5, counting)},
                 {"seconds_p99", one.percentile_seconds(0.99, counting)},
                 {"exchanges_per_round", one.exchanges_per_turn()},
                 {"workers", one.side().workers},
                 {"units_per_second", units_of(shape) * one.side().workers / seconds},
                 {"bytes_per_second_each_way",
                  static_cast<double>(shape.bytes) * one.side().workers / seconds}};
    const auto best = one.side().ours ? best_peer(contestants, one.side(), rounds) : std::nullopt;
    if (best) {
      const Spread ratio = ratio_to(*best, i, contestants, rounds);
      side["best_peer"] = contestants[*best].side().name;
      side["ratio"] = {{"median", ratio.median}, {"min", ratio.min}, {"max", ratio.max}};
    }
    document["sides"].push_back(side);
  }
  return document.dump();
}

}  // namespace syncopate::bench
