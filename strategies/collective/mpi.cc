// MPI's all-reduce: the baseline for comparisons, and the choice for clusters with a tuned MPI. MPI
// makes progress only during calls of MPI_Test, so a communication thread keeps calling it. That
// thread makes all MPI calls except MpiSession's. MPI does not tell which rank is late or dead.
#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "models/base/denormals.h"
#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/base/shared_memory_file.h"
#include "models/base/unique_handle.h"
#include "models/tensor/sums.h"
#include "strategies/collective/collectives.h"
#include "strategies/collective/mpi_calls.h"
#include "strategies/collective/work_progress.h"

namespace syncopate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMaxSums = 256;
constexpr std::size_t kMaxBroadcastBytes = std::size_t{1} << 30;  // MPI's counts are of type int

constexpr std::uint64_t kMostRequests = 8;
// The size of one chunk's MPI request. Larger requests delay the operations behind them, smaller
// ones cost more calls.
constexpr std::size_t kChunkBytes = std::size_t{4} << 20;

struct CommunicatorTraits {
  using Type = MpiCalls::Handle;
  static Type none() noexcept { return 0; }
  static void close(Type communicator) noexcept { mpi_calls().free_communicator(communicator); }
};
using Communicator = UniqueHandle<CommunicatorTraits>;

void check_mpi(int code, const char* call) {
  if (code == 0) return;
  std::array<char, 512> text{};
  mpi_calls().error_text(code, text.data(), static_cast<int>(text.size()));
  throw PeerError(fmt::format("{}: {}; did another rank die? see the other tasks' last lines", call,
                              text.data()));
}

void add_bf16(void* addend, void* into, int count) {
  sum_kernels(detect_isa())
      .add_bf16(static_cast<std::uint16_t*>(into), static_cast<const std::uint16_t*>(addend),
                count);
}

Communicator duplicate_world() {
  MpiCalls::Handle communicator = 0;
  check_mpi(mpi_calls().make_communicator(&communicator), "MPI_Comm_dup");
  return Communicator(communicator);
}

struct ChunkRequest {
  MpiCalls::Handle request = 0;
  bool ends_sum = false;
};

// A small blocking operation: an all_gather, or a broadcast of less than 2 GiB.
struct SmallOperation {
  std::span<const std::byte> mine;  // this rank's bytes of an all_gather
  std::span<std::byte> bytes;       // receives the gathered or broadcast bytes
  int root = -1;                    // rank with a broadcast's bytes; -1: all_gather
};

// The MPI requests in progress. One thread at a time, while no other thread calls MPI. Every
// function throws PeerError when an MPI call fails, since the cause is the network or another rank.
class MpiRequests {
 public:
  MpiRequests();  // collective call: every rank makes one
  MpiRequests(const MpiRequests&) = delete;
  MpiRequests& operator=(const MpiRequests&) = delete;
  ~MpiRequests();

  // Sums of tensors are in place. They are started one after the other in chunks, and end in order.
  bool has_room() const noexcept;
  // Starts the next chunk of the tensor's sum. Returns whether that was the last chunk.
  bool start_chunk(const Tensor& tensor);
  // Returns the number of sums that have ended since the last call.
  int test_sums();

  void start_small(const SmallOperation& operation);  // the previous one must have ended
  bool test_small();                                  // whether the small operation has ended

  // The number of chunks and small operations that test_sums() and test_small() saw complete.
  std::uint64_t completed() const noexcept;
  bool idle() const noexcept;

 private:
  Communicator for_sums_ = duplicate_world();
  Communicator small_communicator_ = duplicate_world();
  MpiCalls::Handle sum_of_bf16_ = 0;
  std::array<ChunkRequest, kMostRequests> requests_;  // chunks oldest_ to newest_ - 1 are started
  std::uint64_t oldest_ = 0;
  std::uint64_t newest_ = 0;
  std::size_t started_bytes_ = 0;  // bytes of the current sum that are started
  MpiCalls::Handle small_ = 0;
  std::uint64_t completed_small_ = 0;
};

MpiRequests::MpiRequests() {
  check_mpi(mpi_calls().make_sum(add_bf16, &sum_of_bf16_), "MPI_Op_create");
}

MpiRequests::~MpiRequests() {
  if (idle()) {
    mpi_calls().free_sum(sum_of_bf16_);
    return;
  }
  // After a failure, requests may never complete, and freeing their communicators could block. Both
  // are left to MPI_Abort.
  (void)for_sums_.release();
  (void)small_communicator_.release();
}

bool MpiRequests::start_chunk(const Tensor& tensor) {
  const std::size_t size = tensor.bytes().size();
  // An empty tensor is summed as one empty chunk.
  const std::size_t bytes = std::min(kChunkBytes, size - started_bytes_);
  const bool is_f32 = tensor.dtype() == DType::kF32;
  ChunkRequest& next = requests_[newest_ % kMostRequests];
  check_mpi(mpi_calls().start_all_reduce(tensor.bytes().data() + started_bytes_,
                                         static_cast<int>(bytes / size_bytes(tensor.dtype())),
                                         is_f32 ? 0 : sum_of_bf16_, for_sums_.get(), &next.request),
            "MPI_Iallreduce");
  ++newest_;
  started_bytes_ += bytes;
  next.ends_sum = started_bytes_ == size;
  if (next.ends_sum) started_bytes_ = 0;
  return next.ends_sum;
}

int MpiRequests::test_sums() {
  int ended = 0;
  for (; oldest_ < newest_; ++oldest_) {
    ChunkRequest& next = requests_[oldest_ % kMostRequests];
    bool has_ended = false;
    check_mpi(mpi_calls().test(&next.request, &has_ended), "MPI_Test");
    if (!has_ended) break;
    if (next.ends_sum) ++ended;
  }
  return ended;
}

void MpiRequests::start_small(const SmallOperation& operation) {
  const auto all = static_cast<int>(operation.bytes.size());
  const auto each = static_cast<int>(operation.mine.size());
  if (operation.root < 0) {
    check_mpi(mpi_calls().start_all_gather(operation.mine.data(), each, operation.bytes.data(),
                                           small_communicator_.get(), &small_),
              "MPI_Iallgather");
  } else {
    check_mpi(mpi_calls().start_broadcast(operation.bytes.data(), all, operation.root,
                                          small_communicator_.get(), &small_),
              "MPI_Ibcast");
  }
}

bool MpiRequests::test_small() {
  bool has_ended = false;
  check_mpi(mpi_calls().test(&small_, &has_ended), "MPI_Test");
  if (!has_ended) return false;
  ++completed_small_;
  return true;
}

bool MpiRequests::has_room() const noexcept { return newest_ - oldest_ < kMostRequests; }

std::uint64_t MpiRequests::completed() const noexcept { return oldest_ + completed_small_; }

bool MpiRequests::idle() const noexcept { return oldest_ == newest_ && small_ == 0; }

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
        timeout_(options.timeout),
        peer_progress_(options.progress),
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
    abort_reason_.throw_if_set();
    const WorkId work = submitted_sums_.load(std::memory_order_relaxed) + 1;
    // A sum's slot is free once the sum kMaxSums earlier has ended. A caller that starts more sums
    // waits here.
    if (work > kMaxSums) await_sum(work - kMaxSums);
    sums_[(work - 1) % kMaxSums] = {tensor, index, begun};
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
    abort_reason_.throw_if_set();
    for (std::size_t begin = 0; begin < bytes.size(); begin += kMaxBroadcastBytes) {
      run_small(
          {{}, bytes.subspan(begin, std::min(kMaxBroadcastBytes, bytes.size() - begin)), root});
    }
  }

  void abort(std::string_view reason) noexcept override {
    abort_reason_.set(reason);
    sum_progress_.abort();
    small_progress_.abort();
    wake_communication();
  }

  CommunicationTimes times() const noexcept override {
    const double under_way = std::chrono::duration<double>(sum_progress_.under_way()).count();
    return {.under_way_seconds = under_way,
            .exposed_seconds = std::min(exposed_seconds_, under_way)};
  }

 private:
  // The functions from here to wake_communication() run on the caller's thread.

  void await_sum(WorkId work) {
    if (await(sum_progress_, work)) return;
    const Sum& sum = sums_[(work - 1) % kMaxSums];
    give_up(fmt::format("the all-reduce of {} {} elements at index {}", sum.tensor.num_elements(),
                        name(sum.tensor.dtype()), sum.index));
  }

  void run_small(const SmallOperation& small) {
    abort_reason_.throw_if_set();
    small_ = small;
    const std::uint64_t work = submitted_small_.load(std::memory_order_relaxed) + 1;
    submitted_small_.store(work, std::memory_order_release);
    wake_communication();
    if (await(small_progress_, work)) return;
    give_up(fmt::format("{} of {} bytes", small.root < 0 ? "an all-gather" : "a broadcast",
                        small.bytes.size()));
  }

  // Waits for the communication thread's progress. Returns false at the timeout.
  bool await(const WorkProgress& progress, std::uint64_t work) const {
    ProgressDeadline deadline(timeout_, peer_progress_);
    WorkProgress::Outcome outcome = WorkProgress::Outcome::kLate;
    do {
      outcome = progress.wait(work, Deadline::after(deadline.remaining()));
    } while (outcome == WorkProgress::Outcome::kLate && !deadline.passed());
    if (outcome == WorkProgress::Outcome::kAborted) abort_reason_.throw_if_set();
    return outcome == WorkProgress::Outcome::kEnded;
  }

  [[noreturn]] void give_up(const std::string& what) {
    abort(
        fmt::format("rank {} waited {} in {} for the other ranks, and MPI does not report which; "
                    "is one stopped, or busy?",
                    rank_, in_seconds(timeout_), what));
    throw PeerError(abort_reason_.text());
  }

  void wake_communication() noexcept {
    wakes_.fetch_add(1, std::memory_order_acq_rel);
    futex_wake_all(wakes_);
  }

  // The functions from here on run on the communication thread.

  void communicate(const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), fmt::format("mpi-{}", rank_).c_str());
    const FlushDenormals flush;
    try {
      Clock::time_point moved = Clock::now();
      while (!stop.stop_requested() && !abort_reason_.is_set()) {
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

  // MPI offers no file descriptor for poll(), so an idle thread sleeps for short times.
  void back_off(std::uint32_t wakes, Clock::duration idle) {
    constexpr std::chrono::microseconds kSpinTime{50};
    constexpr std::chrono::microseconds kYieldTime{200};
    constexpr std::chrono::microseconds kSleepTime{100};
    if (requests_.idle()) {
      futex_wait(wakes_, wakes, std::chrono::seconds(1));
    } else if (idle > kYieldTime) {
      futex_wait(wakes_, wakes, kSleepTime);
    } else if (idle > kSpinTime) {
      std::this_thread::yield();
    }
  }

  bool start_submitted() {
    bool started = false;
    const std::uint64_t sums = submitted_sums_.load(std::memory_order_acquire);
    for (; started_sums_ < sums && requests_.has_room(); started = true) {
      if (requests_.start_chunk(sums_[started_sums_ % kMaxSums].tensor)) ++started_sums_;
    }
    const std::uint64_t submitted = submitted_small_.load(std::memory_order_acquire);
    if (started_small_ < submitted) {
      requests_.start_small(small_);
      started_small_ = submitted;
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
                        sums_[before % kMaxSums].begun);
    }
    if (small_progress_.ended() < started_small_ && requests_.test_small()) {
      small_progress_.end(started_small_, started_small_, Clock::now());
    }
  }

  const int rank_;
  const int size_;
  const std::chrono::nanoseconds timeout_;
  const PeerProgress peer_progress_;
  Tensor block_;
  AbortReason abort_reason_;

  std::array<Sum, kMaxSums> sums_;  // sum number s is in slot s % kMaxSums until it ends
  std::atomic<std::uint64_t> submitted_sums_{0};
  WorkProgress sum_progress_;
  SmallOperation small_;
  std::atomic<std::uint64_t> submitted_small_{0};
  WorkProgress small_progress_;
  std::atomic<std::uint32_t> wakes_{0};  // the futex that the communication thread sleeps on
  double exposed_seconds_ = 0.0;         // how long the caller's thread waited

  // The state below is used by the communication thread only.
  MpiRequests requests_;
  std::uint64_t started_sums_ = 0;
  std::uint64_t started_small_ = 0;

  std::jthread communication_;  // last, since the thread uses all members above
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_mpi_collectives(const CollectiveOptions& options) {
  if (options.num_local_ranks != 1) {
    throw UsageError(
        fmt::format("--collective mpi: expected one replica per process, found {}; start more "
                    "processes, or choose --collective ring",
                    options.num_local_ranks));
  }
  check(mpi_calls().is_initialized(), "an MpiSession before the collectives");
  const int rank = mpi_calls().rank();
  const int size = mpi_calls().size();
  if (options.membership != nullptr) {
    const int tasks = static_cast<int>(options.membership->members().size());
    if (tasks != size || options.membership->index() != rank) {
      throw UsageError(fmt::format(
          "--collective mpi: the job has {} tasks, and this one is number {}; MPI knows {} and "
          "calls it number {}; start it with mpirun or `syncopate launch --collective mpi`",
          tasks, options.membership->index(), size, rank));
    }
  }
  std::vector<std::unique_ptr<Collective>> ranks;
  ranks.push_back(std::make_unique<MpiCollective>(rank, size, options));
  return ranks;
}

}  // namespace syncopate
