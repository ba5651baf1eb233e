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

// The calls that every side makes at one data size: an all-reduce, or a push and pull.
struct ContestTask {
  std::function<std::string(int calls)> command;  // text of the command that makes `calls` calls
  int uncounted_calls = 1;                        // calls of a command that are not timed
  int most_calls = 5000;                          // most timed calls in one command
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
  // Returns a percentile of the seconds of all calls in the undisturbed rounds (of all rounds if
  // fewer than three are undisturbed by other processes).
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

// Measures all contestants in turns at one data size. Rounds::sides[s] belongs to contestants[s].
Rounds take_contest_rounds(std::vector<Contestant>& contestants, const ContestTask& task,
                           int rounds, double seconds_per_turn);

// Returns a table's cell: the best peer's time per byte divided by our contestant's (index `ours`),
// and the peer's name; "" for a peer. A side over TCP is compared only with peers over TCP.
std::string ratio_cell(const std::vector<Contestant>& contestants, std::size_t ours,
                       const Rounds& rounds);
// Returns a contestant's name, description and seconds, and its speed relative to the best peer.
nlohmann::json contestant_json(const std::vector<Contestant>& contestants, std::size_t index,
                               const Rounds& rounds);

}  // namespace syncopate::bench
