// Lets the sides of a benchmark of communication take turns: our side and its peers, each a group
// of processes that answers commands (peer.h). Finds the best peer and formats what the tables and
// JSON files of `all-reduce` and `ps` have in common.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/harness/peer.h"
#include "bench/harness/rounds.h"

namespace syncopate::bench {

struct ContestSide {
  std::string name;  // name of the side, such as "ours, shm" or "zmq"
  bool ours = false;
  bool tcp = false;  // whether the data goes over TCP; false: shared memory
  int workers = 1;   // The number of workers that make the calls of a command at the same time.
  std::vector<std::string> command{};
};

// Describes the calls of one data size in a contest.
struct ContestTask {
  std::function<std::string(int calls)> command;  // Returns the command for a number of calls.
  int uncounted_calls = 1;                        // further calls that each command makes
  int most_calls = 5000;                          // largest number of calls in one command
};

// Owns the processes of one side and records their times at the current size. One thread only.
class Contestant {
 public:
  // Starts the processes. Throws what the constructor of Peer throws.
  explicit Contestant(ContestSide side);

  const ContestSide& side() const noexcept { return side_; }
  const std::string& description() const noexcept { return peer_->description(); }
  std::vector<pid_t> pids() const;
  int calls_per_turn() const noexcept { return calls_per_turn_; }
  // Returns the JSON answer to the last command.
  const std::string& last_answer() const noexcept { return last_answer_; }

  // Prepares the turns at a data size: finds how many calls fill a turn and discards earlier times.
  void prepare(ContestTask task, double seconds_per_turn);
  // Runs one turn of this side and returns the median seconds of a call.
  double take_turn();
  // Sends another command and returns the `count` times of its answer.
  std::vector<double> ask(const std::string& command, int count);
  // Returns a percentile of the seconds of all calls in the rounds that quiet_rounds selects.
  double percentile_seconds(double share, const Rounds& rounds) const;

 private:
  std::vector<double> call(int calls);

  ContestSide side_;
  std::unique_ptr<Peer> peer_;
  ContestTask task_;
  int calls_per_turn_ = 0;
  std::string last_answer_;
  // Seconds of calls, indexed by [turn][call]; a turn has the calls of all workers.
  std::vector<std::vector<double>> seconds_;
};

// Runs all turns of the contestants at one size. sides[s] of the result belongs to contestant s.
Rounds take_contest_rounds(std::vector<Contestant>& contestants, const ContestTask& task,
                           int rounds, double seconds_per_turn);

// Returns the best peer's time divided by that of contestant `ours`, per byte, and the peer's name,
// as a table shows it; "" for a peer. A side over TCP is compared only with peers over TCP.
std::string ratio_cell(const std::vector<Contestant>& contestants, std::size_t ours,
                       const Rounds& rounds);
// Returns the name, description and seconds of a contestant, and the ratio of ratio_cell.
nlohmann::json contestant_json(const std::vector<Contestant>& contestants, std::size_t index,
                               const Rounds& rounds);

}  // namespace syncopate::bench
