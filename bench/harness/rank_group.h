// Connects the ranks of one side of a comparison, which are processes on this machine. All ranks
// connect to rank 0, sleep until rank 0 sends them a command, and start each measurement together.
// RankGroup uses none of the measured libraries, so every side waits in the same way.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/deadline.h"
#include "models/base/file_descriptor.h"

namespace syncopate::bench {

// The membership of one process in a group of ranks on this machine. One thread only.
class RankGroup {
 public:
  // Connects to the other ranks and returns when all are connected. `name` is equal on all ranks
  // and unique on this machine. Throws PeerError naming the rank that did not connect, and
  // FileError.
  RankGroup(int rank, int size, const std::string& name, const Deadline& deadline);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // Returns the process ids of all ranks, in rank order, on rank 0. Returns an empty list on other
  // ranks.
  const std::vector<pid_t>& pids() const noexcept { return pids_; }

  // Returns the next command on every rank; every rank calls this function. Rank 0 reads a line of
  // its standard input and sends the line to the other ranks. Blocks until there is a line. Returns
  // nullopt at the end of the input, or when rank 0 has ended. A line has at most kLongestText
  // bytes.
  std::optional<std::string> next_command();
  // Returns, on every rank, the `text` that rank 0 passed; every rank calls this function. Throws
  // PeerError when rank 0 has ended.
  std::string share(const std::string& text);

  // A barrier: returns when all ranks have called it. Spins; if each rank has a core of its own,
  // all ranks return within a microsecond. Throws PeerError when a rank failed or did not arrive by
  // the deadline.
  void barrier(const Deadline& deadline);
  // Marks this rank as failed, so that barriers of other ranks throw instead of waiting for this
  // rank.
  void fail() noexcept;

  // Returns the part of the shared memory to which `rank` writes its measurements.
  std::span<double> row(int rank) noexcept;

  static constexpr std::size_t kRowLength = 1U << 16;
  static constexpr std::size_t kLongestText = 4096;

 private:
  struct Shared;

  void meet(const std::string& name, const Deadline& deadline);
  void join(const std::string& name, const Deadline& deadline);
  void map_shared(int descriptor);
  void send_to_others(const std::string& text);
  std::optional<std::string> receive_from_first();

  int rank_;
  int size_;
  // The sockets to other ranks. Rank 0 has a socket to each other rank; the other ranks have only a
  // socket to rank 0.
  std::vector<FileDescriptor> sockets_;
  std::vector<pid_t> pids_;
  FileDescriptor memory_;
  Shared* shared_ = nullptr;
};

// Makes the group of a program that starts copies of itself. Rank 0 starts ranks 1 to size - 1,
// each as the same program with `arguments` and "--rank R". The standard input of these ranks is
// empty, and their output goes to standard error. The kernel kills these ranks when rank 0 ends for
// any reason. Throws what RankGroup throws, and FileError.
std::unique_ptr<RankGroup> make_rank_group(int rank, int size,
                                           const std::vector<std::string>& arguments);

// Serves the commands of a benchmark; every rank calls this. Rank 0 prints {"event":"ready", ...}
// with `description` and the process ids. All ranks then call run(command) for each command. Rank 0
// prints {"event":"steps", ...} with the fields of the object that run() returns, which must
// include "seconds". Returns at the command `quit` or at the end of standard input. If a command
// takes more than 240 s, the process ends, because a library may hang. If run() throws, marks the
// rank as failed and rethrows the exception.
void serve_commands(RankGroup& group, std::string_view description,
                    const std::function<nlohmann::json(const std::string& command)>& run);

// Returns, for each of `count` measurements, the time of the slowest rank. Every rank calls this
// function after writing its `count` times in seconds to row(rank). On rank 0, element i of the
// result is the largest of the i-th times of all ranks; on other ranks, the result is empty. Throws
// what RankGroup::barrier() throws.
std::vector<double> slowest_of_ranks(RankGroup& group, std::size_t count, const Deadline& deadline);

}  // namespace syncopate::bench
