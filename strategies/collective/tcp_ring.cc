#include "strategies/collective/tcp_ring.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/errors.h"
#include "strategies/collective/arguments.h"
#include "strategies/collective/collectives.h"

namespace syncopate {
namespace {

// Tries before poll(), about 20 us: a sleeping core takes 10 to 25 us to wake.
constexpr int kIdleTries = 30;
// For the membership, or the ranks before us, to say what they know.
constexpr std::chrono::seconds kGrace{2};

}  // namespace

TcpRing::TcpRing(const Options& options, RingLinks links)
    : options_(options),
      block_(make_host_tensor({options.block_elements}, DType::kF32)),
      work_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stream_(std::move(links.bulk_to_next), std::move(links.bulk_from_previous), options.rank,
              options.size, operations_),
      messages_(std::move(links.small_to_next), std::move(links.small_from_previous), options.rank,
                options.size) {
  if (!work_event_) throw FileError(describe_errno("create", "an eventfd", errno));
  if (options.size == 1) return;
  communication_ = std::jthread([this](const std::stop_token& stop) { communicate(stop); });
}

TcpRing::~TcpRing() {
  communication_.request_stop();
  wake_communication();
}

WorkId TcpRing::all_reduce(const Tensor& tensor, std::int64_t index) {
  const Clock::time_point begun = Clock::now();
  check_all_reduce(tensor);
  if (progress_.is_over()) throw_reason();
  const WorkId work = ++next_work_;
  if (options_.size == 1) return work;
  // The slot's last user has ended, so that 257 under way are slow and not wrong.
  if (work > RingStream::kMostOperations) wait_until_ended(work - RingStream::kMostOperations);
  RingOperation& operation = operations_[(work - 1) % RingStream::kMostOperations];
  operation.tensor = tensor;
  operation.data = tensor.bytes().data();
  operation.element_bytes = size_bytes(tensor.dtype());
  operation.plan = RingPlan(index, tensor.num_elements(), options_.size);
  operation.header.dtype = static_cast<std::uint32_t>(tensor.dtype());
  operation.header.sequence = work - 1;
  operation.header.length = tensor.num_elements();
  operation.header.index = index;
  operation.begun = begun;
  submitted_.store(work);
  if (communication_sleeps_.load()) wake_communication();
  exposed_seconds_ += std::chrono::duration<double>(Clock::now() - begun).count();
  return work;
}

void TcpRing::wait(WorkId work) {
  check(work <= next_work_, "wait: a work that all_reduce returned");
  if (progress_.is_over()) throw_reason();
  if (options_.size == 1 || progress_.ended() >= work) return;
  const Clock::time_point begun = Clock::now();
  wait_until_ended(work);
  exposed_seconds_ += std::chrono::duration<double>(Clock::now() - begun).count();
}

void TcpRing::wait_until_ended(WorkId work) {
  const RingOperation& operation = operations_[(work - 1) % RingStream::kMostOperations];
  switch (progress_.wait(work, Deadline::after(options_.patience))) {
    case WorkProgress::Outcome::kEnded:
      return;
    case WorkProgress::Outcome::kOver:
      throw_reason();
    case WorkProgress::Outcome::kLate:
      give_up(LateRank{to_string(operation.header), stream_.begun_by_previous() >= work});
  }
}

void TcpRing::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  check_all_gather(mine, all, size());
  if (options_.size == 1) {
    end_.throw_if_set();
    std::ranges::copy(mine, all.begin());
    return;
  }
  run_small([&](const Deadline& patience) { messages_.all_gather(mine, all, end_, patience); });
}

void TcpRing::broadcast(std::span<std::byte> bytes, int root) {
  check_broadcast(root, size());
  if (options_.size == 1) return end_.throw_if_set();
  run_small([&](const Deadline& patience) { messages_.broadcast(bytes, root, end_, patience); });
}

template <typename Operation>
void TcpRing::run_small(const Operation& operation) {
  if (progress_.is_over()) throw_reason();
  try {
    operation(Deadline::after(options_.patience));
  } catch (const LinkClosed& closed) {
    give_up(closed.reason, true);
  } catch (const LateRank& late) {
    give_up(late);
  } catch (const PeerError& error) {
    give_up(error.what(), false);
  }
}

void TcpRing::abort(std::string_view reason) noexcept {
  end_.set(reason);
  progress_.set_over();
}

CommunicationTimes TcpRing::times() const noexcept {
  const double under_way = std::chrono::duration<double>(progress_.under_way()).count();
  // The caller wakes a little after the end.
  return {.under_way_seconds = under_way,
          .exposed_seconds = std::min(exposed_seconds_, under_way),
          .bytes_sent = stream_.bytes_sent(),
          .bytes_received = stream_.bytes_received()};
}

void TcpRing::throw_reason() {
  if (end_.is_set()) give_up(end_.text(), false);
  std::string reason;
  {
    const std::lock_guard lock(mutex_);
    reason = link_reason_;
  }
  give_up(reason, true);
}

void TcpRing::give_up(const LateRank& late) {
  const std::string previous =
      "rank " + std::to_string((options_.rank + options_.size - 1) % options_.size);
  const std::string waited = "rank " + std::to_string(options_.rank) + " waited " +
                             in_seconds(options_.patience) + " in " + late.what + " for " +
                             previous;
  if (late.previous_has_come) {
    give_up(waited + ", which waits for a rank before it; see the other tasks' last lines", true);
  }
  give_up(waited + ", which is alive and has not come to it; is it stopped, or busy?", false);
}

void TcpRing::give_up(const std::string& reason, bool others_may_know) {
  if (others_may_know) {
    const Deadline grace = Deadline::after(kGrace);
    const std::optional<std::string> told = messages_.await_reason(end_, grace);
    if (options_.has_membership && !grace.passed()) {
      pollfd event{end_.descriptor(), POLLIN, 0};
      (void)poll(&event, 1, grace.remaining_milliseconds());
    }
    if (told) end_.set(*told);  // does nothing when the membership has spoken
  }
  end_.set(reason);
  progress_.set_over();
  messages_.send_reason(end_.text());
  throw PeerError(end_.text());
}

void TcpRing::communicate(const std::stop_token& stop) {
  pthread_setname_np(pthread_self(), ("ring-" + std::to_string(options_.rank)).c_str());
  try {
    move_bytes(stop);
  } catch (const LinkClosed& closed) {
    {
      const std::lock_guard lock(mutex_);
      link_reason_ = closed.reason;
    }
    progress_.set_over();
  } catch (const PeerError& error) {
    end_.set(error.what());
    progress_.set_over();
  }
  // The next rank finds out at once, and asks for the reason.
  stream_.end_sending();
}

void TcpRing::move_bytes(const std::stop_token& stop) {
  int idle_tries = 0;
  while (!stop.stop_requested() && !end_.is_set()) {
    const std::uint64_t submitted = submitted_.load(std::memory_order_acquire);
    if (stream_.step(submitted)) {
      count_ended(submitted);
      idle_tries = 0;
    } else if (stream_.ended() == submitted || ++idle_tries == kIdleTries) {
      sleep(submitted);
      idle_tries = 0;
    }
  }
}

void TcpRing::count_ended(std::uint64_t submitted) {
  const std::uint64_t before = progress_.ended();
  if (stream_.ended() == before) return;
  const RingOperation& first = operations_[before % RingStream::kMostOperations];
  progress_.end(stream_.ended(), submitted, first.begun);
}

// Until a socket is ready for what step() wants, something is submitted, or all is over. It has no
// deadline: the caller's wait has.
void TcpRing::sleep(std::uint64_t submitted) {
  // Before the last look at submitted_, and all_reduce() does it the other way round: one of the
  // two sees the other's store.
  communication_sleeps_.store(true);
  if (submitted_.load() == submitted) {
    std::array<pollfd, 4> events = {
        pollfd{stream_.wants_to_send(submitted) ? stream_.to_next() : -1, POLLOUT, 0},
        pollfd{stream_.wants_to_receive(submitted) ? stream_.from_previous() : -1, POLLIN, 0},
        pollfd{work_event_.get(), POLLIN, 0}, pollfd{end_.descriptor(), POLLIN, 0}};
    (void)poll(events.data(), events.size(), -1);
  }
  communication_sleeps_.store(false);
  eventfd_t drained = 0;
  (void)eventfd_read(work_event_.get(), &drained);
}

void TcpRing::wake_communication() noexcept { (void)eventfd_write(work_event_.get(), 1); }

std::vector<std::unique_ptr<Collective>> make_tcp_ring_collectives(
    const CollectiveOptions& options) {
  Ring ring = connect_ring(options);
  std::vector<std::unique_ptr<Collective>> ranks;
  for (std::size_t local = 0; local < ring.links.size(); ++local) {
    ranks.push_back(std::make_unique<TcpRing>(
        TcpRing::Options{.rank = ring.first_rank + static_cast<int>(local),
                         .size = ring.size,
                         .block_elements = options.block_elements,
                         .patience = options.patience,
                         .has_membership = options.membership != nullptr,
                         .forwarder = ring.forwarder},
        std::move(ring.links[local])));
  }
  return ranks;
}

}  // namespace syncopate
