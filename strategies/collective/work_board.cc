#include "strategies/collective/work_board.h"

#include <immintrin.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"

namespace syncopate {
namespace {

// A waiting rank looks for about 50 us, several times what the others of a step differ by, before
// it sleeps; where the ranks outnumber the CPUs it would only keep the one it waits for from
// running.
constexpr int kSpins = 1500;
constexpr int kSpinsWhenCrowded = 20;
// Sleepers look up this often, so that nothing that is lost can keep them for long.
constexpr std::chrono::milliseconds kNap(50);

// More ranks than the machine has CPUs. (Not what this thread may use: a task that is bound to its
// own CPU shares it with nobody.)
bool is_crowded(int num_ranks) { return num_ranks > sysconf(_SC_NPROCESSORS_ONLN); }

std::string ranks_text(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "replica" : "replicas";
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    text += (i == 0 ? " " : ", ") + std::to_string(ranks[i]);
  }
  return text;
}

}  // namespace

std::size_t WorkBoard::size_bytes(int num_ranks) noexcept {
  const auto n = static_cast<std::size_t>(num_ranks);
  return sizeof(Bell) + n * sizeof(Rank) + kMostJobsUnderWay * sizeof(Job) + 2 * n * kPostBytes;
}

// The structures are trivial and live in mapped memory: zeroed bytes are their initial values.
WorkBoard::WorkBoard(std::byte* memory, int num_ranks) noexcept
    : num_ranks_(num_ranks),
      bell_(reinterpret_cast<Bell*>(memory)),
      ranks_(reinterpret_cast<Rank*>(memory + sizeof(Bell))),
      jobs_(reinterpret_cast<Job*>(ranks_ + num_ranks)),
      posts_(reinterpret_cast<std::byte*>(jobs_ + kMostJobsUnderWay)) {}

std::byte* WorkBoard::posted(int parity, int rank) const noexcept {
  return posts_ + static_cast<std::size_t>(parity * num_ranks_ + rank) * kPostBytes;
}

void WorkBoard::ring() const noexcept {
  // What is announced was stored with sequential consistency, and so is the sleeper's increment:
  // either we see it, or it sees what we stored. (Its look is an acquire load, which is enough on
  // x86; elsewhere it would sleep through one nap at worst.)
  if (bell_->sleepers.load(std::memory_order_seq_cst) == 0) return;
  bell_->rung.fetch_add(1, std::memory_order_release);
  futex_wake_all(bell_->rung);
}

void WorkBoard::abort(std::string_view reason) noexcept {
  std::uint32_t expected = 0;
  if (bell_->aborted.compare_exchange_strong(expected, 1, std::memory_order_acq_rel)) {
    const std::size_t length = std::min(reason.size(), bell_->reason.size() - 1);
    std::copy_n(reason.data(), length, bell_->reason.data());
    bell_->reason[length] = '\0';
    bell_->aborted.store(2, std::memory_order_release);
  }
  bell_->rung.fetch_add(1, std::memory_order_release);
  futex_wake_all(bell_->rung);
}

void WorkBoard::throw_aborted() const {
  // Who died while it wrote its reason leaves none.
  const Deadline deadline = Deadline::after(std::chrono::seconds(1));
  while (bell_->aborted.load(std::memory_order_acquire) != 2 && !deadline.passed()) _mm_pause();
  if (bell_->aborted.load(std::memory_order_acquire) != 2) {
    throw PeerError("another replica failed and could not say why");
  }
  throw PeerError(bell_->reason.data());
}

BoardRank::BoardRank(WorkBoard& board, int rank, std::chrono::nanoseconds patience, Work work)
    : board_(board),
      rank_(rank),
      patience_(patience),
      spins_(is_crowded(board.num_ranks()) ? kSpinsWhenCrowded : kSpins),
      work_(std::move(work)) {}

template <typename Ready, typename Missing>
void BoardRank::wait_until(const Ready& ready, const Missing& missing) {
  for (int spin = 0; spin < spins_; ++spin) {
    if (ready()) return;
    _mm_pause();
  }
  const Deadline deadline = Deadline::after(patience_);
  WorkBoard::Bell& bell = *board_.bell_;
  while (!ready()) {
    if (board_.is_aborted()) board_.throw_aborted();
    if (deadline.passed()) throw PeerError(missing());
    bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t rung = bell.rung.load(std::memory_order_acquire);
    if (!ready() && !board_.is_aborted()) {
      futex_wait(bell.rung, rung, std::min<std::chrono::nanoseconds>(kNap, deadline.remaining()));
    }
    bell.sleepers.fetch_sub(1, std::memory_order_relaxed);
  }
}

std::uint64_t BoardRank::post(std::int64_t pieces) {
  if (board_.is_aborted()) board_.throw_aborted();
  if (num_posted_ - num_done_ == WorkBoard::kMostJobsUnderWay) wait(num_done_, "an earlier job");
  const std::uint64_t job = num_posted_++;
  Posted& own = posted_[job % posted_.size()];
  own.pieces = pieces;
  own.finished_when += static_cast<std::uint64_t>(pieces);
  board_.rank(rank_).jobs.store(num_posted_, std::memory_order_seq_cst);
  board_.ring();
  take_pieces(job);
  return job;
}

bool BoardRank::everybody_posted(std::uint64_t job) const noexcept {
  for (int r = 0; r < board_.num_ranks(); ++r) {
    if (board_.rank(r).jobs.load(std::memory_order_acquire) <= job) return false;
  }
  return true;
}

bool BoardRank::done(std::uint64_t job) const noexcept {
  if (job < num_done_) return true;
  return board_.job(job).finished.load(std::memory_order_acquire) >=
         posted_[job % posted_.size()].finished_when;
}

// A place still shows an earlier job until the first claim of this one. Nobody can be about to
// claim for that earlier job: whoever posts kMostJobsUnderWay jobs later has left its claiming
// behind.
bool BoardRank::claim(std::uint64_t job, std::int64_t* piece) {
  constexpr int kTagShift = 32;
  std::atomic<std::uint64_t>& claimed = board_.job(job).claimed;
  const std::uint64_t tag = (job + 1) << kTagShift;
  std::uint64_t now = claimed.load(std::memory_order_acquire);
  while (now >> kTagShift != tag >> kTagShift) {
    if (claimed.compare_exchange_weak(now, tag, std::memory_order_acq_rel)) break;
  }
  now = claimed.fetch_add(1, std::memory_order_acq_rel);
  *piece = static_cast<std::int64_t>(now & 0xffffffffU);
  return *piece < posted_[job % posted_.size()].pieces;
}

void BoardRank::take_pieces(std::uint64_t last) {
  while (num_done_ <= last) {
    const std::uint64_t job = num_done_;
    if (!done(job)) {
      if (!everybody_posted(job)) return;
      std::uint64_t finished = 0;
      for (std::int64_t piece = 0; claim(job, &piece); ++finished) work_(job, piece);
      if (finished > 0) {
        board_.job(job).finished.fetch_add(finished, std::memory_order_seq_cst);
        board_.ring();
      }
      if (!done(job)) return;  // others have the last pieces in hand
    }
    ++num_done_;
  }
}

void BoardRank::wait(std::uint64_t job, std::string_view what) {
  while (num_done_ <= job) {
    take_pieces(job);
    if (num_done_ > job) return;
    const std::uint64_t next = num_done_;
    if (everybody_posted(next)) {
      wait_until([&] { return done(next); },
                 [&] {
                   return "replica " + std::to_string(rank_) + " waited " + patience_text() +
                          " for another one to finish its part of " + std::string(what);
                 });
    } else {
      wait_until(
          [&] { return everybody_posted(next); },
          [&] {
            return missing_text(
                [&](int r) { return board_.rank(r).jobs.load(std::memory_order_acquire) > next; },
                what);
          });
    }
  }
}

template <typename Here>
std::string BoardRank::missing_text(const Here& here, std::string_view what) const {
  std::vector<int> missing;
  for (int r = 0; r < num_ranks(); ++r) {
    if (!here(r)) missing.push_back(r);
  }
  return "replica " + std::to_string(rank_) + " waited " + patience_text() + " for " +
         ranks_text(missing) + " in " + std::string(what);
}

std::string BoardRank::patience_text() const {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(patience_).count()) + " s";
}

void BoardRank::post_exchange() {
  board_.rank(rank_).exchanges.store(++num_exchanges_, std::memory_order_seq_cst);
  board_.ring();
}

void BoardRank::wait_for_exchange(std::string_view what) {
  const auto here = [&](int r) {
    return board_.rank(r).exchanges.load(std::memory_order_acquire) >= num_exchanges_;
  };
  wait_until(
      [&] {
        for (int r = 0; r < num_ranks(); ++r) {
          if (!here(r)) return false;
        }
        return true;
      },
      [&] { return missing_text(here, what); });
}

// The places of an exchange are used again two exchanges later: whoever has posted the one between
// has read them.
void BoardRank::exchange(std::span<const std::byte> mine, std::span<std::byte> all,
                         std::string_view what) {
  check(mine.size() <= WorkBoard::kPostBytes &&
            all.size() == mine.size() * static_cast<std::size_t>(num_ranks()),
        "an exchange has room for every rank's bytes");
  if (board_.is_aborted()) board_.throw_aborted();
  const int parity = static_cast<int>(num_exchanges_ % 2);
  std::copy(mine.begin(), mine.end(), board_.posted(parity, rank_));
  post_exchange();
  wait_for_exchange(what);
  for (int r = 0; r < num_ranks(); ++r) {
    std::copy_n(board_.posted(parity, r), mine.size(),
                all.data() + mine.size() * static_cast<std::size_t>(r));
  }
}

void BoardRank::broadcast(std::span<std::byte> bytes, int root) {
  // Nobody else writes, so the root has everybody's place.
  const std::size_t most = WorkBoard::kPostBytes * static_cast<std::size_t>(num_ranks());
  for (std::size_t begin = 0; begin < bytes.size(); begin += most) {
    const std::span<std::byte> part = bytes.subspan(begin, std::min(most, bytes.size() - begin));
    if (board_.is_aborted()) board_.throw_aborted();
    std::byte* place = board_.posted(static_cast<int>(num_exchanges_ % 2), 0);
    if (rank_ == root) std::copy(part.begin(), part.end(), place);
    post_exchange();
    wait_for_exchange("a broadcast");
    if (rank_ != root) std::copy_n(place, part.size(), part.begin());
  }
}

}  // namespace syncopate
