#include "ps/net/link_forwarder.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/net/endpoint.h"
#include "ps/net/slow_link.h"
#include "ps/net/wake_event.h"

namespace syncopate {
namespace {

using Time = SlowLink::Time;
using std::chrono::nanoseconds;

// The pause before a forwarder without free file descriptors accepts callers again.
constexpr std::chrono::milliseconds kAcceptPause(100);
// Timer slack: by default Linux may wake a thread 50 us late. Source: prctl(2), PR_SET_TIMERSLACK.
constexpr auto kTimerSlackNanoseconds = 1UL;

// Connects to a local port. Returns an empty descriptor, with errno set, if no socket listens.
FileDescriptor connect_to_loopback(std::uint16_t port) {
  const Addresses found = look_up({loopback_address(), port}, AI_NUMERICHOST);
  if (!found.list) return {};
  const addrinfo& at = *found.list;
  FileDescriptor socket(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return socket;
  if (connect(socket.get(), at.ai_addr, at.ai_addrlen) != 0 && errno != EINPROGRESS) return {};
  prepare_tcp_socket(socket.get());
  return socket;
}

// Makes closing the socket send a reset instead of an orderly end from now on.
void make_abortive(const FileDescriptor& socket) noexcept {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

timespec as_timespec(nanoseconds time) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_nsec = (time - seconds).count()};
}

}  // namespace

class LinkForwarder::Connections {
 public:
  Connections(Listener listener, std::uint16_t target_port, const Link& link)
      : listener_(std::move(listener)),
        target_port_(target_port),
        inwards_(link),
        outwards_(link),
        buffer_(std::max(inwards_.chunk_bytes(), outwards_.chunk_bytes())) {}

  void run(const std::stop_token& stop) {
    prctl(PR_SET_TIMERSLACK, kTimerSlackNanoseconds, 0, 0, 0);
    while (!stop.stop_requested()) {
      wait();
      const Time now = Time::clock::now();
      const pollfd* polled = &polled_[2];
      for (const auto& connection : connections_) {
        const short caller = polled++->revents;
        const short target = polled++->revents;
        move(*connection, caller != 0, target != 0, now);
      }
      std::erase_if(connections_, [](const auto& one) { return has_ended(*one); });
      if (polled_[1].revents != 0) accept(now);
      if (accepts_again_ && *accepts_again_ <= now) accepts_again_.reset();
    }
  }

  void wake() noexcept { wake_.notify(); }

 private:
  struct Forwarded {
    FileDescriptor caller;
    FileDescriptor target;
    SlowStream inwards;
    SlowStream outwards;
  };

  void wait() {
    polled_.clear();
    polled_.push_back({wake_.descriptor(), POLLIN, 0});
    polled_.push_back({accepts_again_ ? -1 : listener_.descriptor(), POLLIN, 0});
    std::optional<Time> next = accepts_again_;
    for (const auto& one : connections_) {
      add(one->caller, one->inwards, one->outwards);
      add(one->target, one->outwards, one->inwards);
      for (const SlowStream* stream : {&one->inwards, &one->outwards}) {
        const std::optional<Time> due = stream->due();
        if (due && (!next || *due < *next)) next = due;
      }
    }
    timespec timeout{};
    if (next) timeout = as_timespec(std::max(nanoseconds(0), *next - Time::clock::now()));
    ppoll(polled_.data(), polled_.size(), next ? &timeout : nullptr, nullptr);
  }

  // A socket without wanted events is left out: its end of stream would wake poll() repeatedly.
  void add(const FileDescriptor& socket, const SlowStream& from, const SlowStream& to) {
    const int events = (from.wants_to_read() ? POLLIN : 0) | (to.wants_to_write() ? POLLOUT : 0);
    polled_.push_back({events == 0 ? -1 : socket.get(), static_cast<short>(events), 0});
  }

  void move(Forwarded& one, bool caller_is_ready, bool target_is_ready, Time now) {
    if (caller_is_ready && one.inwards.wants_to_read()) {
      one.inwards.read_from(one.caller.get(), buffer_, now);
    }
    if (target_is_ready && one.outwards.wants_to_read()) {
      one.outwards.read_from(one.target.get(), buffer_, now);
    }
    if (!one.inwards.write_to(one.target.get(), now)) one.outwards.reset(now);
    if (!one.outwards.write_to(one.caller.get(), now)) one.inwards.reset(now);
    const bool is_reset = one.inwards.delivered() == SlowStream::End::kReset ||
                          one.outwards.delivered() == SlowStream::End::kReset;
    const bool are_gone = one.inwards.is_lost() && one.outwards.is_lost();
    if (!is_reset && !are_gone) return;
    make_abortive(one.caller);
    make_abortive(one.target);
    one.caller.reset();
    one.target.reset();
  }

  static bool has_ended(const Forwarded& one) {
    return !one.caller || (one.inwards.delivered() == SlowStream::End::kClosed &&
                           one.outwards.delivered() == SlowStream::End::kClosed);
  }

  void accept(Time now) {
    try {
      while (auto caller = listener_.accept(Deadline::after(nanoseconds(0)))) {
        FileDescriptor socket = caller->release();
        FileDescriptor target = connect_to_loopback(target_port_);
        if (!target) {
          make_abortive(socket);
          continue;
        }
        connections_.push_back(
            std::make_unique<Forwarded>(Forwarded{.caller = std::move(socket),
                                                  .target = std::move(target),
                                                  .inwards = SlowStream(inwards_),
                                                  .outwards = SlowStream(outwards_)}));
      }
    } catch (const FileError& error) {
      if (!std::exchange(has_warned_, true)) {
        log(LogLevel::kWarning, fmt::format("the slow link: {}", error.what()));
      }
      accepts_again_ = now + kAcceptPause;
    }
  }

  Listener listener_;
  const std::uint16_t target_port_;
  SlowLink inwards_;
  SlowLink outwards_;
  std::vector<char> buffer_;
  std::vector<std::unique_ptr<Forwarded>> connections_;
  std::vector<pollfd> polled_;  // wake event, listener, then two per connection
  std::optional<Time> accepts_again_;
  bool has_warned_ = false;
  WakeEvent wake_;
};

LinkForwarder::LinkForwarder(Listener listener, std::uint16_t target_port, const Link& link)
    : port_(listener.port()),
      connections_(std::make_unique<Connections>(std::move(listener), target_port, link)),
      thread_([this](const std::stop_token& stop) { connections_->run(stop); }) {
  pthread_setname_np(thread_.native_handle(), "slow-link");
}

LinkForwarder::~LinkForwarder() {
  thread_.request_stop();
  connections_->wake();
}

}  // namespace syncopate
