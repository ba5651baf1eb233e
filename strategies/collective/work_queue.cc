#include "strategies/collective/work_queue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <immintrin.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"

namespace syncopate {
namespace {

// A waiting rank polls for about 50 us before it sleeps, which is several times the difference
// between the ranks of a step. Where there are more ranks than CPUs, polling would only keep the
// awaited rank from running.
constexpr int kQueueSpins = 1500;
constexpr int kQueueSpinsWhenCrowded = 20;
// A sleeping rank checks the awaited state this often, which bounds the cost of a lost wake-up.
constexpr std::chrono::milliseconds kLongestSleep(50);

// True if there are more ranks than CPUs in the machine. The CPUs that this thread may use are not
// counted instead: a task that is bound to one CPU does not share it with other ranks.
bool is_crowded(int num_ranks) { return num_ranks > sysconf(_SC_NPROCESSORS_ONLN); }

}  // namespace

std::size_t WorkQueue::size_bytes(int num_ranks) noexcept {
  const auto n = static_cast<std::size_t>(num_ranks);
  return sizeof(SleepState) + n * sizeof(RankState) + kMaxJobs * sizeof(JobState) +
         2 * n * kMessageBytes;
}

// The queue's structures are trivial and in mapped memory: zero bytes are the initial values.
WorkQueue::WorkQueue(std::byte* memory, int num_ranks) noexcept
    : num_ranks_(num_ranks),
      sleep_(reinterpret_cast<SleepState*>(memory)),
      ranks_(reinterpret_cast<RankState*>(memory + sizeof(SleepState))),
      jobs_(reinterpret_cast<JobState*>(ranks_ + num_ranks)),
      messages_(reinterpret_cast<std::byte*>(jobs_ + kMaxJobs)) {}

std::byte* WorkQueue::message(int parity, int rank) const noexcept {
  return messages_ + static_cast<std::size_t>(parity * num_ranks_ + rank) * kMessageBytes;
}

void WorkQueue::wake_sleepers() const noexcept {
  // The posted state was stored with sequential consistency, and so is a sleeper's increment:
  // either this load sees the increment, or the sleeper sees the posted state. (The sleeper's look
  // is an acquire load, which suffices on x86; elsewhere it could miss one wake-up and sleep for
  // kLongestSleep.)
  if (sleep_->sleepers.load(std::memory_order_seq_cst) == 0) return;
  sleep_->wakes.fetch_add(1, std::memory_order_release);
  futex_wake_all(sleep_->wakes);
}

void WorkQueue::abort(std::string_view reason) noexcept {
  std::uint32_t expected = 0;
  if (sleep_->aborted.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) {
    const std::size_t length = std::min(reason.size(), sleep_->reason.size() - 1);
    std::copy_n(reason.data(), length, sleep_->reason.data());
    sleep_->reason[length] = '\0';
    sleep_->aborted.store(2, std::memory_order_release);
  }
  sleep_->wakes.fetch_add(1, std::memory_order_release);
  futex_wake_all(sleep_->wakes);
}

void WorkQueue::throw_aborted() const {
  // `aborted` may stay 1: a process that died while it wrote the reason never stores 2.
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  while (sleep_->aborted.load(std::memory_order_acquire) != 2 && !deadline.passed()) _mm_pause();
  if (sleep_->aborted.load(std::memory_order_acquire) != 2) {
    throw PeerError("another replica failed and could not report why; see the job's other lines");
  }
  throw PeerError(sleep_->reason.data());
}

WorkQueueRank::WorkQueueRank(WorkQueue& queue, int rank, std::chrono::nanoseconds timeout,
                             PeerProgress progress, Work work)
    : queue_(queue),
      rank_(rank),
      timeout_(timeout),
      progress_(std::move(progress)),
      spins_(is_crowded(queue.num_ranks()) ? kQueueSpinsWhenCrowded : kQueueSpins),
      work_(std::move(work)) {}

template <typename Ready, typename Message>
void WorkQueueRank::wait_until(const Ready& ready, const Message& message) {
  for (int spin = 0; spin < spins_; ++spin) {
    if (ready()) return;
    _mm_pause();
  }
  ProgressDeadline deadline(timeout_, progress_);
  WorkQueue::SleepState& sleep = *queue_.sleep_;
  while (!ready()) {
    if (queue_.is_aborted()) queue_.throw_aborted();
    if (deadline.passed()) throw PeerError(message());
    sleep.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t wakes = sleep.wakes.load(std::memory_order_acquire);
    if (!ready() && !queue_.is_aborted()) {
      futex_wait(sleep.wakes, wakes,
                 std::min<std::chrono::nanoseconds>(kLongestSleep, deadline.remaining()));
    }
    sleep.sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
}

std::uint64_t WorkQueueRank::post(std::int64_t pieces) {
  if (queue_.is_aborted()) queue_.throw_aborted();
  if (num_posted_ - num_done_ == WorkQueue::kMaxJobs) wait(num_done_, "an earlier job");
  const std::uint64_t job = num_posted_++;
  PostedJob& own = posted_[job % posted_.size()];
  own.pieces = pieces;
  own.finished_when += static_cast<std::uint64_t>(pieces);
  queue_.rank(rank_).posted_jobs.store(num_posted_, std::memory_order_seq_cst);
  queue_.wake_sleepers();
  execute_pieces(job);
  return job;
}

bool WorkQueueRank::all_ranks_posted(std::uint64_t job) const noexcept {
  for (int r = 0; r < queue_.num_ranks(); ++r) {
    if (queue_.rank(r).posted_jobs.load(std::memory_order_acquire) <= job) return false;
  }
  return true;
}

bool WorkQueueRank::done(std::uint64_t job) const noexcept {
  if (job < num_done_) return true;
  return queue_.job(job).finished.load(std::memory_order_acquire) >=
         posted_[job % posted_.size()].finished_when;
}

// A slot holds the state of an earlier job until the first claim of this job. No rank can still
// claim pieces of that earlier job: a rank that has posted a job kMaxJobs later has finished with
// it.
bool WorkQueueRank::claim(std::uint64_t job, std::int64_t* piece) {
  constexpr int kTagShift = 32;
  std::atomic<std::uint64_t>& claimed = queue_.job(job).claimed;
  const std::uint64_t tag = (job + 1) << kTagShift;
  std::uint64_t now = claimed.load(std::memory_order_acquire);
  while (now >> kTagShift != tag >> kTagShift) {
    if (claimed.compare_exchange_weak(now, tag, std::memory_order_acq_rel)) break;
  }
  now = claimed.fetch_add(1, std::memory_order_acq_rel);
  *piece = static_cast<std::int64_t>(now & 0xffffffffU);
  return *piece < posted_[job % posted_.size()].pieces;
}

void WorkQueueRank::execute_pieces(std::uint64_t last_job) {
  while (num_done_ <= last_job) {
    const std::uint64_t job = num_done_;
    if (!done(job)) {
      if (!all_ranks_posted(job)) return;
      std::uint64_t finished = 0;
      for (std::int64_t piece = 0; claim(job, &piece); ++finished) work_(job, piece);
      if (finished > 0) {
        queue_.job(job).finished.fetch_add(finished, std::memory_order_seq_cst);
        queue_.wake_sleepers();
      }
      if (!done(job)) return;  // other ranks execute the job's last pieces
    }
    ++num_done_;
  }
}

void WorkQueueRank::wait(std::uint64_t job, std::string_view what) {
  while (num_done_ <= job) {
    execute_pieces(job);
    if (num_done_ > job) return;
    const std::uint64_t next = num_done_;
    if (all_ranks_posted(next)) {
      wait_until([&] { return done(next); },
                 [&] {
                   return fmt::format("{} another one to finish its part of {}", waited_text(),
                                      what);
                 });
    } else {
      wait_until([&] { return all_ranks_posted(next); },
                 [&] {
                   return timeout_text(
                       [&](int r) {
                         return queue_.rank(r).posted_jobs.load(std::memory_order_acquire) > next;
                       },
                       what);
                 });
    }
  }
}

template <typename HasArrived>
std::string WorkQueueRank::timeout_text(const HasArrived& has_arrived,
                                        std::string_view what) const {
  std::vector<int> missing;
  for (int r = 0; r < num_ranks(); ++r) {
    if (!has_arrived(r)) missing.push_back(r);
  }
  return fmt::format("{} {} {} in {}", waited_text(), missing.size() == 1 ? "replica" : "replicas",
                     fmt::join(missing, ", "), what);
}

std::string WorkQueueRank::waited_text() const {
  return fmt::format("replica {} waited {} for", rank_, in_seconds(timeout_));
}

void WorkQueueRank::post_message() {
  queue_.rank(rank_).posted_messages.store(++num_messages_, std::memory_order_seq_cst);
  queue_.wake_sleepers();
}

void WorkQueueRank::wait_for_messages(std::string_view what) {
  const auto has_arrived = [&](int r) {
    return queue_.rank(r).posted_messages.load(std::memory_order_acquire) >= num_messages_;
  };
  wait_until(
      [&] {
        for (int r = 0; r < num_ranks(); ++r) {
          if (!has_arrived(r)) return false;
        }
        return true;
      },
      [&] { return timeout_text(has_arrived, what); });
}

// Message slots alternate: a rank that has posted the next message has read this message.
void WorkQueueRank::all_gather(std::span<const std::byte> mine, std::span<std::byte> all,
                               std::string_view what) {
  check(mine.size() <= WorkQueue::kMessageBytes &&
            all.size() == mine.size() * static_cast<std::size_t>(num_ranks()),
        "an all-gather has room for every rank's bytes");
  if (queue_.is_aborted()) queue_.throw_aborted();
  const int parity = static_cast<int>(num_messages_ % 2);
  std::copy(mine.begin(), mine.end(), queue_.message(parity, rank_));
  post_message();
  wait_for_messages(what);
  for (int r = 0; r < num_ranks(); ++r) {
    std::copy_n(queue_.message(parity, r), mine.size(),
                all.data() + mine.size() * static_cast<std::size_t>(r));
  }
}

void WorkQueueRank::broadcast(std::span<std::byte> bytes, int root) {
  // Only the root of a broadcast writes, so it uses the message slots of all ranks as one.
  const std::size_t most = WorkQueue::kMessageBytes * static_cast<std::size_t>(num_ranks());
  for (std::size_t begin = 0; begin < bytes.size(); begin += most) {
    const std::span<std::byte> part = bytes.subspan(begin, std::min(most, bytes.size() - begin));
    if (queue_.is_aborted()) queue_.throw_aborted();
    std::byte* slot = queue_.message(static_cast<int>(num_messages_ % 2), 0);
    if (rank_ == root) std::copy(part.begin(), part.end(), slot);
    post_message();
    wait_for_messages("a broadcast");
    if (rank_ != root) std::copy_n(slot, part.size(), part.begin());
  }
}

}  // namespace syncopate
