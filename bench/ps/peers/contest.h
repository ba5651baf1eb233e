// Runs the sides of `syncopate-bench ps` in turns and formats their results. Every side, ours or a
// peer, is a program that serves exchanges (exchange.h).
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
  std::string name;  // Is a name such as "ours, shm" or "zmq".
  bool ours = false;
  bool tcp = false;  // Is true if the data goes over TCP, false for shared memory.
  int workers = 1;   // The number of workers that exchange at the same time.
  std::vector<std::string> command;
};

// Owns the processes of one side and records their times at the current size. One thread only.
class ExchangeContestant {
 public:
  // Starts the processes. Throws what the constructor of Peer throws.
  explicit ExchangeContestant(ExchangeSide side);

  const ExchangeSide& side() const noexcept { return side_; }
  const std::string& description() const noexcept { return peer_->description(); }
  std::vector<pid_t> pids() const;
  int exchanges_per_turn() const noexcept { return exchanges_per_turn_; }

  // Prepares the turns at a size: finds how many exchanges fill a turn and discards earlier times.
  void prepare(const ExchangeShape& shape, double seconds_per_turn);
  // Runs one turn and returns the median seconds of an exchange, which is a push and a pull of the
  // prepared size.
  double take_turn();
  // Returns the CPU seconds that each server uses while it is idle for `seconds`.
  std::vector<double> idle(int seconds, int servers);
  // Returns a percentile of the seconds of all exchanges in the given rounds.
  double percentile_seconds(double share, std::span<const std::size_t> rounds) const;

 private:
  std::vector<double> ask(int exchanges);

  ExchangeSide side_;
  std::unique_ptr<Peer> peer_;
  ExchangeShape shape_;
  int exchanges_per_turn_ = 0;
  // The index order is [turn][exchange]; a turn has the exchanges of all workers.
  std::vector<std::vector<double>> seconds_;
};

// Runs all turns at one size. sides[s] of the result belongs to contestant s.
Rounds take_exchange_rounds(std::vector<ExchangeContestant>& contestants,
                            const ExchangeShape& shape, int rounds, double seconds_per_turn);

// Formats a heading and one row per side: median, p50 and p99 of the seconds, GB/s in each
// direction, variables per second (messages if there are no variables) of all workers, and the best
// peer's time divided by ours, per byte. A side of ours over TCP is compared only with peers over
// TCP.
std::string exchange_table(const std::string& size, const ExchangeShape& shape,
                           const std::vector<ExchangeContestant>& contestants,
                           const Rounds& rounds);
// Returns the numbers of exchange_table with all rounds, as a JSON object.
std::string exchange_json(const ExchangeShape& shape,
                          const std::vector<ExchangeContestant>& contestants, const Rounds& rounds);

}  // namespace syncopate::bench
