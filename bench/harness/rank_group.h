// The ranks of one side of a comparison, a process each, all on this machine: they meet, sleep in a
// read until rank 0 passes a command on, and start what is measured together. Whose library carries
// the data between them is not known here, so that no side waits by the means of another.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/base/deadline.h"
#include "models/base/file_descriptor.h"

namespace syncopate::bench {

// One thread only.
class RankGroup {
 public:
  // name: the same for all ranks, and no other group's on this machine. Returns when all have come.
  // Throws PeerError (a rank did not come: named), FileError.
  RankGroup(int rank, int size, const std::string& name, const Deadline& deadline);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  // Of all ranks, in order; on rank 0 only.
  const std::vector<pid_t>& pids() const noexcept { return pids_; }

  // Rank 0: a line of its standard input, which reaches the others too. Sleeps until there is one;
  // nothing at the end of the input, or when rank 0 has gone. At most kLongestText bytes.
  std::optional<std::string> next_command();
  // Rank 0's text. Throws PeerError when rank 0 has gone.
  std::string share(const std::string& text);

  // Returns, within a microsecond on cores of their own, when all ranks have called it. Spins.
  // Throws PeerError when a rank failed or did not come by the deadline.
  void barrier(const Deadline& deadline);
  // A rank ends because of an error: nobody waits for it in a barrier.
  void fail() noexcept;

  // Memory that all ranks see, a row for each: what they have measured.
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
  std::vector<FileDescriptor> sockets_;  // rank 0: one per other rank; others: to rank 0
  std::vector<pid_t> pids_;
  FileDescriptor memory_;
  Shared* shared_ = nullptr;
};

// The group of a program that starts itself: rank 0 starts ranks 1 .. size - 1, each this same
// program with `arguments` and then "--rank R", whose standard input is empty and whose output is
// standard error. They end when rank 0 does, however that ends. Throws as RankGroup, and FileError.
std::unique_ptr<RankGroup> make_rank_group(int rank, int size,
                                           const std::vector<std::string>& arguments);

}  // namespace syncopate::bench
