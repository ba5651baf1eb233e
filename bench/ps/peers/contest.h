// Sides of `syncopate-bench ps` that take turns: what each is, what it did, and how that is shown.
// Every side is a program that serves exchanges (exchange.h), ours and the peers alike.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/peer.h"
#include "bench/harness/rounds.h"
#include "bench/ps/peers/exchange.h"

namespace syncopate::bench {

struct ExchangeSide {
  std::string name;  // "ours, shm", "zmq"
  bool ours = false;
  bool tcp = false;  // carries its data over TCP, else through memory
  int workers = 1;   // that exchange at the same time
  std::vector<std::string> command;
};

// A side's processes, and what they did at the present size. One thread only.
class ExchangeContestant {
 public:
  // Starts them. Throws as Peer does.
  explicit ExchangeContestant(ExchangeSide side);

  const ExchangeSide& side() const noexcept { return side_; }
  const std::string& description() const noexcept { return peer_->description(); }
  std::vector<pid_t> pids() const;
  int exchanges_per_turn() const noexcept { return exchanges_per_turn_; }

  // Before the turns at a size: as many exchanges as fill a turn; forgets what was before.
  void prepare(const ExchangeShape& shape, double seconds_per_turn);
  // Median seconds of an exchange, a push and a pull of the prepared size.
  double take_turn();
  // CPU seconds that each server uses while nothing happens.
  std::vector<double> idle(int seconds, int servers);
  // Over all exchanges of these turns.
  double percentile_seconds(double share, std::span<const std::size_t> rounds) const;

 private:
  std::vector<double> ask(int exchanges);

  ExchangeSide side_;
  std::unique_ptr<Peer> peer_;
  ExchangeShape shape_;
  int exchanges_per_turn_ = 0;
  std::vector<std::vector<double>> seconds_;  // [turn][exchange], of every worker
};

// All turns at one size. sides[s] of the rounds is contestant s.
Rounds take_exchange_rounds(std::vector<ExchangeContestant>& contestants,
                            const ExchangeShape& shape, int rounds, double seconds_per_turn);

// A heading and a row for each side: median, p50, p99, GB/s each way and variables (without any:
// messages) per second of all its workers, ratio of the best peer's time to ours, per byte. A side
// of ours that is bound to TCP is held against peers that are.
std::string exchange_table(const std::string& size, const ExchangeShape& shape,
                           const std::vector<ExchangeContestant>& contestants,
                           const Rounds& rounds);
// The same for programs, round by round: a JSON object.
std::string exchange_json(const ExchangeShape& shape,
                          const std::vector<ExchangeContestant>& contestants, const Rounds& rounds);

}  // namespace syncopate::bench
