// MPI's own all-reduce: the yardstick, and what clusters with a tuned MPI have. Nothing overlaps
// unless somebody keeps calling MPI_Test, so a thread does; it makes all MPI calls between
// MpiSession's first and last. Which rank is late or dead MPI does not tell.
#include <mpi.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "models/base/denormals.h"
#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"
#include "strategies/collective/arguments.h"
#include "strategies/collective/collectives.h"
#include "strategies/collective/end_reason.h"
#include "strategies/collective/mpi_requests.h"
#include "strategies/collective/work_progress.h"

namespace syncopate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostOperations = 256;
constexpr std::size_t kBroadcastBytes = std::size_t{1} << 30;  // MPI counts in int

struct Sum {
  Tensor tensor;
  std::int64_t index = 0;
  Clock::time_point begun;
};

class MpiCollective final : public Collective {
 public:
  MpiCollective(int rank, int size, const CollectiveOptions& options)
      : rank_(rank),
        size_(size),
        patience_(options.patience),
        block_(make_host_tensor({options.block_elements}, DType::kF32)) {
    communication_ = std::jthread([this](const std::stop_token& stop) { communicate(stop); });
  }
  MpiCollective(const MpiCollective&) = delete;
  MpiCollective& operator=(const MpiCollective&) = delete;

  ~MpiCollective() override {
    communication_.request_stop();
    wake_communication();
  }

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  const Tensor& block() const noexcept override { return block_; }

  WorkId all_reduce(const Tensor& tensor, std::int64_t index) override {
    const Clock::time_point begun = Clock::now();
    check_all_reduce(tensor);
    end_.throw_if_set();
    const WorkId work = submitted_sums_.load(std::memory_order_relaxed) + 1;
    // The slot's last user has ended, so that 257 under way are slow and not wrong.
    if (work > kMostOperations) await_sum(work - kMostOperations);
    sums_[(work - 1) % kMostOperations] = {tensor, index, begun};
    submitted_sums_.store(work, std::memory_order_release);
    wake_communication();
    exposed_seconds_ += std::chrono::duration<double>(Clock::now() - begun).count();
    return work;
  }

  void wait(WorkId work) override {
    check(work <= submitted_sums_.load(), "wait: a work that all_reduce returned");
    const Clock::time_point begun = Clock::now();
    await_sum(work);
    exposed_seconds_ += std::chrono::duration<double>(Clock::now() - begun).count();
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    check_all_gather(mine, all, size());
    run_small({mine, all, -1});
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    check_broadcast(root, size());
    end_.throw_if_set();
    for (std::size_t begin = 0; begin < bytes.size(); begin += kBroadcastBytes) {
      run_small({{}, bytes.subspan(begin, std::min(kBroadcastBytes, bytes.size() - begin)), root});
    }
  }

  void abort(std::string_view reason) noexcept override {
    end_.set(reason);
    sum_progress_.set_over();
    small_progress_.set_over();
    wake_communication();
  }

  CommunicationTimes times() const noexcept override {
    const double under_way = std::chrono::duration<double>(sum_progress_.under_way()).count();
    return {.under_way_seconds = under_way,
            .exposed_seconds = std::min(exposed_seconds_, under_way)};
  }

 private:
  // The caller's thread.

  void await_sum(WorkId work) {
    if (await(sum_progress_, work)) return;
    const Sum& sum = sums_[(work - 1) % kMostOperations];
    give_up("the all-reduce of " + std::to_string(sum.tensor.num_elements()) + " " +
            std::string(name(sum.tensor.dtype())) + " elements at index " +
            std::to_string(sum.index));
  }

  void run_small(const SmallOperation& small) {
    end_.throw_if_set();
    small_ = small;
    const std::uint64_t work = submitted_smalls_.load(std::memory_order_relaxed) + 1;
    submitted_smalls_.store(work, std::memory_order_release);
    wake_communication();
    if (await(small_progress_, work)) return;
    give_up((small.root < 0 ? "an all-gather of " : "a broadcast of ") +
            std::to_string(small.bytes.size()) + " bytes");
  }

  // False when patience is over.
  bool await(const WorkProgress& progress, std::uint64_t work) const {
    const WorkProgress::Outcome outcome = progress.wait(work, Deadline::after(patience_));
    if (outcome == WorkProgress::Outcome::kOver) end_.throw_if_set();
    return outcome == WorkProgress::Outcome::kEnded;
  }

  [[noreturn]] void give_up(const std::string& what) {
    abort("rank " + std::to_string(rank_) + " waited " + in_seconds(patience_) + " in " + what +
          " for the other ranks, and MPI does not tell for which; is one stopped, or busy?");
    throw PeerError(end_.text());
  }

  void wake_communication() noexcept {
    wakes_.fetch_add(1, std::memory_order_acq_rel);
    futex_wake_all(wakes_);
  }

  // The communication thread.

  void communicate(const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), ("mpi-" + std::to_string(rank_)).c_str());
    const FlushDenormals flush;
    try {
      Clock::time_point moved = Clock::now();
      while (!stop.stop_requested() && !end_.is_set()) {
        const std::uint32_t wakes = wakes_.load(std::memory_order_acquire);
        const std::uint64_t completed = requests_.completed();
        const bool started = start_submitted();
        count_ended();
        if (started || requests_.completed() != completed) {
          moved = Clock::now();
        } else {
          back_off(wakes, Clock::now() - moved);
        }
      }
    } catch (const PeerError& error) {
      abort(error.what());
    }
  }

  // MPI has no descriptor to sleep on.
  void back_off(std::uint32_t wakes, Clock::duration idle) {
    constexpr std::chrono::microseconds kSpinTime{50};
    constexpr std::chrono::microseconds kYieldTime{200};
    constexpr std::chrono::microseconds kNap{100};
    if (requests_.idle()) {
      futex_wait(wakes_, wakes, std::chrono::seconds(1));
    } else if (idle > kYieldTime) {
      futex_wait(wakes_, wakes, kNap);
    } else if (idle > kSpinTime) {
      std::this_thread::yield();
    }
  }

  bool start_submitted() {
    bool started = false;
    const std::uint64_t sums = submitted_sums_.load(std::memory_order_acquire);
    for (; started_sums_ < sums && requests_.has_room(); started = true) {
      if (requests_.start_chunk(sums_[started_sums_ % kMostOperations].tensor)) ++started_sums_;
    }
    const std::uint64_t smalls = submitted_smalls_.load(std::memory_order_acquire);
    if (started_smalls_ < smalls) {
      requests_.start_small(small_);
      started_smalls_ = smalls;
      started = true;
    }
    return started;
  }

  void count_ended() {
    const std::uint64_t before = sum_progress_.ended();
    const int ended = requests_.test_sums();
    if (ended > 0) {
      sum_progress_.end(before + static_cast<std::uint64_t>(ended),
                        submitted_sums_.load(std::memory_order_acquire),
                        sums_[before % kMostOperations].begun);
    }
    if (small_progress_.ended() < started_smalls_ && requests_.test_small()) {
      small_progress_.end(started_smalls_, started_smalls_, Clock::now());
    }
  }

  const int rank_;
  const int size_;
  const std::chrono::nanoseconds patience_;
  Tensor block_;
  EndReason end_;

  std::array<Sum, kMostOperations> sums_;  // sum s in s % kMostOperations, to its end
  std::atomic<std::uint64_t> submitted_sums_{0};
  WorkProgress sum_progress_;
  SmallOperation small_;
  std::atomic<std::uint64_t> submitted_smalls_{0};
  WorkProgress small_progress_;
  std::atomic<std::uint32_t> wakes_{0};  // the communication thread sleeps on it
  double exposed_seconds_ = 0.0;         // the caller's

  // The communication thread's.
  MpiRequests requests_;
  std::uint64_t started_sums_ = 0;
  std::uint64_t started_smalls_ = 0;

  std::jthread communication_;  // last: it uses all of the above
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_mpi_collectives(const CollectiveOptions& options) {
  if (options.num_local_ranks != 1) {
    throw UsageError("--collective mpi: one replica per process, and " +
                     std::to_string(options.num_local_ranks) +
                     " are asked for; start more processes, or choose --collective ring");
  }
  int initialized = 0;
  MPI_Initialized(&initialized);
  check(initialized != 0, "an MpiSession before the collectives");
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (options.membership != nullptr) {
    const int tasks = static_cast<int>(options.membership->members().size());
    const std::string found = "--collective mpi: the job has " + std::to_string(tasks) +
                              " tasks, and this one is number " +
                              std::to_string(options.membership->index()) + "; MPI knows " +
                              std::to_string(size) + " and calls it number " + std::to_string(rank);
    if (tasks != size || options.membership->index() != rank) {
      throw UsageError(found + "; start it with mpirun or `syncopate launch --collective mpi`");
    }
  }
  std::vector<std::unique_ptr<Collective>> ranks;
  ranks.push_back(std::make_unique<MpiCollective>(rank, size, options));
  return ranks;
}

}  // namespace syncopate
