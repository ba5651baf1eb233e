// Lets the sides of a benchmark of communication take turns. A side is this program or a peer, and
// runs as a group of processes that answers commands (peer.h). Also finds the best peer, and
// formats the common parts of the tables and JSON files of `all-reduce` and `ps`.
#pragma once

#include <sys/types.h>

#include <functional>
#include <iosfwd>
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
  bool tcp = false;  // true: data goes over TCP; false: shared memory
  int workers = 1;   // workers that make the calls of a command at the same time
  std::vector<std::string> command{};
};

// The calls that every side makes at one data size. A call is an all-reduce, or a push and pull.
struct ContestTask {
  std::function<std::string(int calls)> command;  // returns the command that makes `calls` calls
  int uncounted_calls = 1;                        // calls of a command that are not timed
  int most_calls = 5000;                          // largest number of timed calls in one command
};

// Owns the processes of one side and records the times of its calls at the current data size. One
// thread only.
class Contestant {
 public:
  // Starts the processes of the side. Throws what the constructor of Peer throws.
  explicit Contestant(ContestSide side);

  const ContestSide& side() const noexcept { return side_; }
  const std::string& description() const noexcept { return peer_->description(); }
  std::vector<pid_t> pids() const;
  int calls_per_turn() const noexcept { return calls_per_turn_; }
  // Returns the JSON answer to the last command.
  const std::string& last_answer() const noexcept { return last_answer_; }

  // Prepares the turns at the data size of `task`: finds how many calls one turn of
  // seconds_per_turn seconds has, and discards the recorded times.
  void prepare(ContestTask task, double seconds_per_turn);
  // Runs one turn of this side and returns the median of the seconds of its calls.
  double take_turn();
  // Sends `command`, which need not be a command of the ContestTask, to the processes. Returns the
  // `count` times in the answer, in seconds. Throws PeerError if the answer has another number of
  // times.
  std::vector<double> ask(const std::string& command, int count);
  // Returns a percentile of the seconds of all calls in the rounds that quiet_rounds() selects.
  double percentile_seconds(double share, const Rounds& rounds) const;

 private:
  std::vector<double> call(int calls);

  ContestSide side_;
  std::unique_ptr<Peer> peer_;
  ContestTask task_;
  int calls_per_turn_ = 0;
  std::string last_answer_;
  // The seconds of each call, as seconds_[turn][call], where the calls of a turn are the calls of
  // all workers.
  std::vector<std::vector<double>> seconds_;
};

// Starts the processes of all sides and prints the name and the description of each. Throws what
// the constructor of Peer throws.
std::vector<Contestant> start_contest(std::vector<ContestSide> sides, std::ostream& out);

// Measures all contestants in turns at one data size. Rounds::sides[s] belongs to contestants[s].
Rounds take_contest_rounds(std::vector<Contestant>& contestants, const ContestTask& task,
                           int rounds, double seconds_per_turn);

// Returns the cell of a table that compares contestants[ours] with the best peer. The cell has the
// time of the best peer divided by the time of contestants[ours], and the name of the peer. Returns
// "" if contestants[ours] is not a side of this program. A side over TCP is compared only with
// peers over TCP.
std::string ratio_cell(const std::vector<Contestant>& contestants, std::size_t ours,
                       const Rounds& rounds);
// Returns the name, description and seconds of contestants[index], and its speed relative to the
// best peer.
nlohmann::json contestant_json(const std::vector<Contestant>& contestants, std::size_t index,
                               const Rounds& rounds);

}  // namespace syncopate::bench
