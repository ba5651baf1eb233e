#include "bench/harness/contest.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <set>
#include <utility>

#include "bench/harness/measure.h"
#include "bench/harness/report.h"

namespace syncopate::bench {
namespace {

using nlohmann::json;

constexpr int kTrialCalls = 3;
constexpr int kFewestCalls = 3;

struct PeerRatio {
  std::string name;  // name of the fastest peer, such as "zmq"
  Spread ratio;
};

// Returns the fastest peer's seconds per byte divided by the seconds per byte of our side `index`.
// All workers of our side make their calls at once, so in the time of one call they move workers *
// bytes.
std::optional<PeerRatio> ratio_to_best_peer(const std::vector<Contestant>& contestants,
                                            std::size_t index, const Rounds& rounds) {
  const ContestSide& ours = contestants[index].side();
  if (!ours.ours) return std::nullopt;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < contestants.size(); ++i) {
    const ContestSide& side = contestants[i].side();
    if (side.ours || (ours.tcp && !side.tcp)) continue;
    if (!best || median(rounds.counted(i)) < median(rounds.counted(*best))) best = i;
  }
  if (!best) return std::nullopt;
  const Spread ratio = ratio_of(rounds.counted(*best), rounds.counted(index));
  const auto workers = static_cast<double>(ours.workers);
  return PeerRatio{contestants[*best].side().name,
                   {ratio.median * workers, ratio.min * workers, ratio.max * workers}};
}

}  // namespace

Contestant::Contestant(ContestSide side)
    : side_(std::move(side)),
      peer_(std::make_unique<Peer>(PeerOptions{.command = side_.command})) {}

std::vector<pid_t> Contestant::pids() const {
  std::set<pid_t> pids = {peer_->pid()};
  for (const json& pid : json::parse(peer_->settings()).value("pids", json::array())) {
    pids.insert(pid.get<pid_t>());
  }
  return {pids.begin(), pids.end()};
}

std::vector<double> Contestant::ask(const std::string& command, int count) {
  PeerAnswer answer = peer_->ask(command, count);
  last_answer_ = std::move(answer.text);
  return std::move(answer.seconds);
}

std::vector<double> Contestant::call(int calls) {
  return ask(task_.command(calls), calls * side_.workers);
}

void Contestant::prepare(ContestTask task, double seconds_per_turn) {
  task_ = std::move(task);
  seconds_.clear();
  call(1);  // one uncounted call allocates and touches the memory
  const auto start = SteadyClock::now();
  call(kTrialCalls);
  const double calls =
      seconds_per_turn / seconds_since(start) * (kTrialCalls + task_.uncounted_calls);
  calls_per_turn_ = static_cast<int>(std::clamp<double>(calls, kFewestCalls, task_.most_calls));
}

double Contestant::take_turn() {
  seconds_.push_back(call(calls_per_turn_));
  return median(seconds_.back());
}

double Contestant::percentile_seconds(double share, const Rounds& rounds) const {
  std::vector<double> all;
  for (const std::size_t round : quiet_rounds(rounds.foreign)) {
    all.insert(all.end(), seconds_.at(round).begin(), seconds_.at(round).end());
  }
  return percentile(all, share);
}

std::vector<Contestant> start_contest(std::vector<ContestSide> sides, std::ostream& out) {
  std::vector<Contestant> contestants;
  for (ContestSide& side : sides) {
    const Contestant& one = contestants.emplace_back(std::move(side));
    out << one.side().name << ": " << one.description() << '\n';
  }
  return contestants;
}

Rounds take_contest_rounds(std::vector<Contestant>& contestants, const ContestTask& task,
                           int rounds, double seconds_per_turn) {
  std::vector<Turn> turns;
  std::vector<pid_t> pids;
  for (Contestant& one : contestants) {
    one.prepare(task, seconds_per_turn);
    turns.emplace_back([&one] { return one.take_turn(); });
    const std::vector<pid_t> its = one.pids();
    pids.insert(pids.end(), its.begin(), its.end());
  }
  return take_rounds(rounds, turns, pids);
}

std::string ratio_cell(const std::vector<Contestant>& contestants, std::size_t ours,
                       const Rounds& rounds) {
  if (!contestants[ours].side().ours) return "";
  const auto best = ratio_to_best_peer(contestants, ours, rounds);
  if (!best) return "no peer";
  return spread_text(best->ratio) + " x " + best->name +
         (is_quiet(rounds.foreign) ? "" : " NOT QUIET");
}

json contestant_json(const std::vector<Contestant>& contestants, std::size_t index,
                     const Rounds& rounds) {
  const Contestant& one = contestants[index];
  json side = {{"name", one.side().name},
               {"description", one.description()},
               {"seconds", median(rounds.counted(index))},
               {"seconds_per_round", rounds.sides[index]},
               {"seconds_p99", one.percentile_seconds(0.99, rounds)}};
  if (const auto best = ratio_to_best_peer(contestants, index, rounds)) {
    side["best_peer"] = best->name;
    side["ratio"] = spread_json(best->ratio);
  }
  return side;
}

}  // namespace syncopate::bench
