// How ranks that share memory, threads or processes, do one job together: each posts that its part
// is there, and once all have posted, whoever has time takes the next piece until none is left.
// Nobody waits for a thread that the scheduler has put aside while there is work to take. What a
// piece is, and what is done with it, is the caller's affair (shared_memory.cc).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/deadline.h"

namespace syncopate {

// The shared part: a view on memory that all ranks map. Zeroed memory is a board on which nothing
// has happened.
class WorkBoard {
 public:
  static constexpr std::size_t kMostJobsUnderWay = 256;
  static constexpr std::size_t kPostBytes = std::size_t{64} << 10;  // of each rank, for exchange()

  static std::size_t size_bytes(int num_ranks) noexcept;
  // memory: size_bytes(num_ranks), zeroed before the first view, aligned to 64; outlives the view.
  WorkBoard(std::byte* memory, int num_ranks) noexcept;

  int num_ranks() const noexcept { return num_ranks_; }
  // From any thread of any process that maps the board: everybody who waits, now or later, throws
  // PeerError(reason). The first reason stays.
  void abort(std::string_view reason) noexcept;
  bool is_aborted() const noexcept { return bell_->aborted.load(std::memory_order_acquire) != 0; }
  // After abort(): throws PeerError with its reason.
  [[noreturn]] void throw_aborted() const;

 private:
  friend class BoardRank;

  // One cache line for each writer.
  struct alignas(64) Rank {
    std::atomic<std::uint64_t> jobs;       // posted so far
    std::atomic<std::uint64_t> exchanges;  // posted so far
  };
  struct alignas(64) Job {
    std::atomic<std::uint64_t> claimed;  // number of the job + 1 in the high half, next piece below
    std::atomic<std::uint64_t> finished;  // pieces, of all jobs that used this place
  };
  struct alignas(64) Bell {
    std::atomic<std::uint32_t> rung;  // futex word
    std::atomic<std::uint32_t> sleepers;
    std::atomic<std::uint32_t> aborted;  // 0, 1 while the reason is being written, 2
    std::array<char, 1024> reason;
  };

  Rank& rank(int i) const noexcept { return ranks_[i]; }
  Job& job(std::uint64_t number) const noexcept { return jobs_[number % kMostJobsUnderWay]; }
  std::byte* posted(int parity, int rank) const noexcept;
  void ring() const noexcept;

  int num_ranks_;
  Bell* bell_;
  Rank* ranks_;
  Job* jobs_;
  std::byte* posts_;
};

// One rank's hand on the board. One thread only.
class BoardRank {
 public:
  // Does piece `piece` of job `job`.
  using Work = std::function<void(std::uint64_t job, std::int64_t piece)>;

  // patience: how long a wait may last.
  BoardRank(WorkBoard& board, int rank, std::chrono::nanoseconds patience, Work work);

  int rank() const noexcept { return rank_; }
  int num_ranks() const noexcept { return board_.num_ranks(); }

  // Our part of the next job is there; every rank posts the same jobs in the same order, with as
  // many pieces. Returns its number, from 0. Takes pieces of earlier jobs if there are any to take.
  // Throws PeerError.
  std::uint64_t post(std::int64_t pieces);
  // Returns when all pieces of the job are done, taking pieces meanwhile. Throws PeerError:
  // aborted, or a rank that did not post, or did not finish, in time (then named).
  void wait(std::uint64_t job, std::string_view what);
  // True, and costs little, when all pieces are done.
  bool done(std::uint64_t job) const noexcept;

  // Blocking: all[r * mine.size() ..] = rank r's bytes, at most kPostBytes. Throws PeerError.
  void exchange(std::span<const std::byte> mine, std::span<std::byte> all, std::string_view what);
  // Blocking: the root's bytes to everybody, any length. Throws PeerError.
  void broadcast(std::span<std::byte> bytes, int root);

 private:
  struct Posted {
    std::int64_t pieces = 0;
    std::uint64_t finished_when = 0;  // the place's counter then
  };

  bool everybody_posted(std::uint64_t job) const noexcept;
  void take_pieces(std::uint64_t last);
  bool claim(std::uint64_t job, std::int64_t* piece);
  void post_exchange();
  void wait_for_exchange(std::string_view what);
  std::string patience_text() const;
  // What a wait in vain says: which ranks are not `here`.
  template <typename Here>
  std::string missing_text(const Here& here, std::string_view what) const;
  template <typename Ready, typename Missing>
  void wait_until(const Ready& ready, const Missing& missing);

  WorkBoard& board_;
  int rank_;
  std::chrono::nanoseconds patience_;
  int spins_;
  Work work_;
  std::uint64_t num_posted_ = 0;
  std::uint64_t num_done_ = 0;  // jobs before this one are done
  std::uint64_t num_exchanges_ = 0;
  std::array<Posted, WorkBoard::kMostJobsUnderWay> posted_{};
};

}  // namespace syncopate
