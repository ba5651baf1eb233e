// A queue of jobs for ranks that share memory; ranks are threads or processes. Every rank posts
// every job. Once all ranks have posted a job, any rank that is free claims the next piece of the
// job, until no piece is left. So while there is work to do, no rank waits for a thread that the
// scheduler has suspended. The user of the queue (shared_memory.cc) defines what a piece is.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "strategies/collective/progress_deadline.h"

namespace syncopate {

// The shared state of the queue: a view of memory that all ranks map. Zeroed memory is an empty
// queue.
class WorkQueue {
 public:
  // The largest number of jobs that are posted and have not ended.
  static constexpr std::size_t kMaxJobs = 256;
  // The largest number of bytes that a rank may pass to all_gather().
  static constexpr std::size_t kMessageBytes = std::size_t{64} << 10;

  static std::size_t size_bytes(int num_ranks) noexcept;
  // Makes a view of the queue in `memory`, which has size_bytes(num_ranks) bytes, is aligned to 64
  // bytes, and must be zeroed before the first view is made. The memory must outlive the view.
  WorkQueue(std::byte* memory, int num_ranks) noexcept;

  int num_ranks() const noexcept { return num_ranks_; }
  // Makes every wait of any rank, also later waits, throw PeerError(reason). Any thread of any
  // process that maps the queue may call it. Only the reason of the first call is used.
  void abort(std::string_view reason) noexcept;
  bool is_aborted() const noexcept { return sleep_->aborted.load(std::memory_order_acquire) != 0; }
  // Throws PeerError with the reason that was passed to abort().
  [[noreturn]] void throw_aborted() const;

 private:
  friend class WorkQueueRank;

  // RankState, JobState and SleepState are aligned to cache lines, so that threads which write
  // different structures do not share a cache line.
  struct alignas(64) RankState {
    std::atomic<std::uint64_t> posted_jobs;
    std::atomic<std::uint64_t> posted_messages;
  };
  struct alignas(64) JobState {
    // The high half is the number of the job + 1, the low half the job's next unclaimed piece.
    std::atomic<std::uint64_t> claimed;
    // Number of finished pieces of all jobs that have used this JobState; see job().
    std::atomic<std::uint64_t> finished;
  };
  struct alignas(64) SleepState {
    std::atomic<std::uint32_t> wakes;  // the futex on which waiting ranks sleep
    std::atomic<std::uint32_t> sleepers;
    std::atomic<std::uint32_t> aborted;  // 0, then 1 while the reason is being written, then 2
    std::array<char, 1024> reason;
  };

  RankState& rank(int i) const noexcept { return ranks_[i]; }
  JobState& job(std::uint64_t number) const noexcept { return jobs_[number % kMaxJobs]; }
  std::byte* message(int parity, int rank) const noexcept;
  void wake_sleepers() const noexcept;

  int num_ranks_;
  SleepState* sleep_;
  RankState* ranks_;
  JobState* jobs_;
  std::byte* messages_;
};

// One rank of the queue: posts jobs, executes pieces and waits. One thread only.
class WorkQueueRank {
 public:
  // A function that executes piece `piece` of job `job`.
  using Work = std::function<void(std::uint64_t job, std::int64_t piece)>;

  // `timeout` limits every wait of this rank for other ranks, see ProgressDeadline.
  WorkQueueRank(WorkQueue& queue, int rank, std::chrono::nanoseconds timeout, PeerProgress progress,
                Work work);

  int rank() const noexcept { return rank_; }
  int num_ranks() const noexcept { return queue_.num_ranks(); }

  // Posts the next job for this rank and returns the number of the job, from 0. Every rank must
  // post the same jobs in the same order, with equal numbers of pieces. Also executes pieces that
  // are ready. Throws PeerError.
  std::uint64_t post(std::int64_t pieces);
  // Executes pieces until the ranks together have done all pieces of the job. `what` names the job
  // in messages. Throws PeerError if the queue is aborted, or if a rank did not post or finish in
  // time; the message names this rank.
  void wait(std::uint64_t job, std::string_view what);
  // Returns whether all pieces of the job are done. Only reads memory, so it costs little.
  bool done(std::uint64_t job) const noexcept;

  // All-gather: stores rank r's bytes at all[r * mine.size() ..]; at most kMessageBytes per rank.
  // Blocking. Throws PeerError.
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all, std::string_view what);
  // Broadcast: copies the bytes of rank `root`, of any length, to every rank. Blocking. Throws
  // PeerError.
  void broadcast(std::span<std::byte> bytes, int root);

 private:
  struct PostedJob {
    std::int64_t pieces = 0;
    std::uint64_t finished_when = 0;  // value of JobState::finished at which the job is done
  };

  bool all_ranks_posted(std::uint64_t job) const noexcept;
  void execute_pieces(std::uint64_t last_job);
  bool claim(std::uint64_t job, std::int64_t* piece);
  void post_message();
  void wait_for_messages(std::string_view what);
  // Returns the message of a timeout, which names every rank r with has_arrived(r) == false.
  template <typename HasArrived>
  std::string timeout_text(const HasArrived& has_arrived, std::string_view what) const;
  std::string waited_text() const;
  template <typename Ready, typename Message>
  void wait_until(const Ready& ready, const Message& message);

  WorkQueue& queue_;
  int rank_;
  std::chrono::nanoseconds timeout_;
  PeerProgress progress_;
  int spins_;
  Work work_;
  std::uint64_t num_posted_ = 0;
  std::uint64_t num_done_ = 0;  // all jobs with lower numbers than this are done
  std::uint64_t num_messages_ = 0;
  std::array<PostedJob, WorkQueue::kMaxJobs> posted_{};
};

}  // namespace syncopate
