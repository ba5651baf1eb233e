// The collective of tasks that share no memory: a ring of TCP connections. One communication thread
// per rank moves and adds the bytes (ring_all_reduce.h); small blocking operations run in the
// caller's thread on other connections (ring_messages.h).
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "ps/net/wake_event.h"
#include "strategies/collective/collectives.h"
#include "strategies/collective/ring_all_reduce.h"
#include "strategies/collective/ring_links.h"
#include "strategies/collective/ring_messages.h"
#include "strategies/collective/work_progress.h"

namespace syncopate {
namespace {

// How long a rank waits, after its connection broke, for the membership or the previous rank to
// tell the cause.
constexpr std::chrono::seconds kReasonTimeout{2};

class RingCollective final : public Collective {
 public:
  struct Options {
    int rank = 0;
    int size = 1;
    std::int64_t block_elements = 0;
    std::chrono::nanoseconds timeout{};
    PeerProgress progress{};
    // The membership knows the cause of a closed connection, so the ring waits to be told by it.
    bool has_membership = false;
    std::shared_ptr<LinkForwarder> forwarder;  // emulates this task's slow network link
  };
  // Makes rank `rank` of the ring. With one rank, `links` are not used and no thread is started.
  RingCollective(const Options& options, RingLinks links)
      : options_(options),
        block_(make_host_tensor({options.block_elements}, DType::kF32)),
        ring_(std::move(links.bulk_to_next), std::move(links.bulk_from_previous), options.rank,
              options.size, operations_),
        messages_(std::move(links.small_to_next), std::move(links.small_from_previous),
                  options.rank, options.size) {
    if (options.size == 1) return;
    communication_ = std::jthread([this](const std::stop_token& stop) { communicate(stop); });
  }
  RingCollective(const RingCollective&) = delete;
  RingCollective& operator=(const RingCollective&) = delete;
  ~RingCollective() override {
    communication_.request_stop();
    work_event_.notify();
  }

  int rank() const noexcept override { return options_.rank; }
  int size() const noexcept override { return options_.size; }
  const Tensor& block() const noexcept override { return block_; }

  WorkId all_reduce(const Tensor& tensor, std::int64_t index) override {
    const Clock::time_point begun = Clock::now();
    check_all_reduce(tensor);
    if (progress_.is_aborted()) throw_reason();
    const WorkId work = ++next_work_;
    if (options_.size == 1) return work;
    // An operation's slot is free once the operation kMaxOperations earlier has ended. A caller
    // that starts more operations waits here.
    if (work > RingAllReduce::kMaxOperations)
      wait_until_ended(work - RingAllReduce::kMaxOperations);
    RingOperation& operation = operations_[(work - 1) % RingAllReduce::kMaxOperations];
    operation.tensor = tensor;
    operation.data = tensor.bytes().data();
    operation.element_bytes = size_bytes(tensor.dtype());
    operation.partition = RingPartition(index, tensor.num_elements(), options_.size);
    operation.header.dtype = static_cast<std::uint32_t>(tensor.dtype());
    operation.header.sequence = work - 1;
    operation.header.length = tensor.num_elements();
    operation.header.index = index;
    operation.begun = begun;
    submitted_.store(work);
    if (communication_sleeps_.load()) work_event_.notify();
    exposed_seconds_ += std::chrono::duration<double>(Clock::now() - begun).count();
    return work;
  }

  void wait(WorkId work) override {
    check(work <= next_work_, "wait: a work that all_reduce returned");
    if (progress_.is_aborted()) throw_reason();
    if (options_.size == 1 || progress_.ended() >= work) return;
    const Clock::time_point begun = Clock::now();
    wait_until_ended(work);
    exposed_seconds_ += std::chrono::duration<double>(Clock::now() - begun).count();
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    check_all_gather(mine, all, size());
    if (options_.size == 1) {
      abort_reason_.throw_if_set();
      std::ranges::copy(mine, all.begin());
      return;
    }
    run_small([&](ProgressDeadline& deadline) {
      messages_.all_gather(mine, all, abort_reason_, deadline);
    });
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    check_broadcast(root, size());
    if (options_.size == 1) return abort_reason_.throw_if_set();
    run_small([&](ProgressDeadline& deadline) {
      messages_.broadcast(bytes, root, abort_reason_, deadline);
    });
  }

  void abort(std::string_view reason) noexcept override {
    abort_reason_.set(reason);
    progress_.abort();
  }

  CommunicationTimes times() const noexcept override {
    const double under_way = std::chrono::duration<double>(progress_.under_way()).count();
    // The caller wakes a little after the end of the all-reduces, so its time may exceed theirs.
    return {.under_way_seconds = under_way,
            .exposed_seconds = std::min(exposed_seconds_, under_way),
            .bytes_sent = ring_.bytes_sent(),
            .bytes_received = ring_.bytes_received()};
  }

 private:
  using Clock = WorkProgress::Clock;

  // The functions from here to give_up() run on the caller's thread.

  void wait_until_ended(WorkId work) {
    const RingOperation& operation = operations_[(work - 1) % RingAllReduce::kMaxOperations];
    switch (progress_.wait(work, Deadline::after(options_.timeout))) {
      case WorkProgress::Outcome::kEnded:
        return;
      case WorkProgress::Outcome::kAborted:
        throw_reason();
      case WorkProgress::Outcome::kLate:
        give_up(LateRank{to_string(operation.header), ring_.begun_by_previous() >= work});
    }
  }

  template <typename Operation>
  void run_small(const Operation& operation) {
    if (progress_.is_aborted()) throw_reason();
    try {
      ProgressDeadline deadline(options_.timeout, options_.progress);
      operation(deadline);
    } catch (const LinkClosed& closed) {
      give_up(closed.reason, true);
    } catch (const LateRank& late) {
      give_up(late);
    } catch (const PeerError& error) {
      give_up(error.what(), false);
    }
  }

  [[noreturn]] void throw_reason() {
    if (abort_reason_.is_set()) give_up(abort_reason_.text(), false);
    std::string reason;
    {
      const std::lock_guard lock(mutex_);
      reason = link_reason_;
    }
    give_up(reason, true);
  }

  [[noreturn]] void give_up(const LateRank& late) {
    const std::string waited = fmt::format("rank {} waited {} in {} for rank {}", options_.rank,
                                           in_seconds(options_.timeout), late.what,
                                           (options_.rank + options_.size - 1) % options_.size);
    if (late.previous_has_started) {
      give_up(waited + ", which waits for a rank before it; see the other tasks' last lines", true);
    }
    give_up(waited + ", which is alive and has not come to it; is it stopped, or busy?", false);
  }

  // Aborts the collective and sends the reason along the ring. If others may know the cause, their
  // reason is preferred: the membership's, then the previous rank's.
  [[noreturn]] void give_up(const std::string& seen, bool others_may_know) {
    if (others_may_know) {
      const Deadline deadline = Deadline::after(kReasonTimeout);
      const std::optional<std::string> received = messages_.await_reason(abort_reason_, deadline);
      if (options_.has_membership && !deadline.passed()) {
        pollfd event{abort_reason_.descriptor(), POLLIN, 0};
        (void)poll(&event, 1, deadline.remaining_milliseconds());
      }
      if (received) abort_reason_.set(*received);  // no effect if the membership set a reason
    }
    abort_reason_.set(seen);
    progress_.abort();
    messages_.send_reason(abort_reason_.text());
    throw PeerError(abort_reason_.text());
  }

  // The functions from here to sleep() run on the communication thread.

  void communicate(const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), fmt::format("ring-{}", options_.rank).c_str());
    try {
      move_bytes(stop);
    } catch (const LinkClosed& closed) {
      {
        const std::lock_guard lock(mutex_);
        link_reason_ = closed.reason;
      }
      progress_.abort();
    } catch (const PeerError& error) {
      abort_reason_.set(error.what());
      progress_.abort();
    }
    // With the sending direction closed, the next rank reads the stream's end and awaits a reason.
    ring_.shut_down_sending();
  }

  void move_bytes(const std::stop_token& stop) {
    int idle_attempts = 0;
    while (!stop.stop_requested() && !abort_reason_.is_set()) {
      const std::uint64_t submitted = submitted_.load(std::memory_order_acquire);
      if (ring_.progress(submitted)) {
        count_ended(submitted);
        idle_attempts = 0;
      } else if (ring_.ended() == submitted || ++idle_attempts == kIdleAttempts) {
        sleep(submitted);
        idle_attempts = 0;
      }
    }
  }

  void count_ended(std::uint64_t submitted) {
    const std::uint64_t before = progress_.ended();
    if (ring_.ended() == before) return;
    const RingOperation& first = operations_[before % RingAllReduce::kMaxOperations];
    progress_.end(ring_.ended(), submitted, first.begun);
  }

  // Sleeps until a socket is ready for what progress() needs, an operation is submitted, or the
  // collective is aborted. This wait has no deadline, since the caller's wait has one.
  void sleep(std::uint64_t submitted) {
    // The flag of sleeping is stored before submitted_ is read, and all_reduce() stores and reads
    // in the opposite order: at least one of the two threads sees the other's store.
    communication_sleeps_.store(true);
    if (submitted_.load() == submitted) {
      std::array<pollfd, 4> events = {
          pollfd{ring_.wants_to_send(submitted) ? ring_.to_next() : -1, POLLOUT, 0},
          pollfd{ring_.wants_to_receive(submitted) ? ring_.from_previous() : -1, POLLIN, 0},
          pollfd{work_event_.descriptor(), POLLIN, 0},
          pollfd{abort_reason_.descriptor(), POLLIN, 0}};
      (void)poll(events.data(), events.size(), -1);
    }
    communication_sleeps_.store(false);
    work_event_.clear();
  }

  const Options options_;
  Tensor block_;
  AbortReason abort_reason_;
  WakeEvent work_event_;
  RingAllReduce::Operations operations_;
  RingAllReduce ring_;     // used by the communication thread
  RingMessages messages_;  // used by the caller's thread
  double exposed_seconds_ = 0.0;
  std::uint64_t next_work_ = 0;

  std::atomic<std::uint64_t> submitted_{0};
  WorkProgress progress_;
  std::atomic<bool> communication_sleeps_{false};
  std::mutex mutex_;
  std::string link_reason_;  // why a link failed; guarded by mutex_

  std::jthread communication_;  // last, since the thread uses all members above
};

}  // namespace

std::vector<std::unique_ptr<Collective>> make_tcp_ring_collectives(
    const CollectiveOptions& options) {
  Ring ring = connect_ring(options);
  std::vector<std::unique_ptr<Collective>> ranks;
  for (std::size_t local = 0; local < ring.links.size(); ++local) {
    ranks.push_back(std::make_unique<RingCollective>(
        RingCollective::Options{.rank = ring.first_rank + static_cast<int>(local),
                                .size = ring.size,
                                .block_elements = options.block_elements,
                                .timeout = options.timeout,
                                .progress = options.progress,
                                .has_membership = options.membership != nullptr,
                                .forwarder = ring.forwarder},
        std::move(ring.links[local])));
  }
  return ranks;
}

}  // namespace syncopate
