#include "strategies/collective/ring_links.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/parse_number.h"
#include "models/base/secret.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"
#include "ps/net/socket.h"
#include "strategies/cluster/handshake.h"
#include "strategies/cluster/outgoing_greeting.h"
#include "strategies/cluster/pending_connections.h"

namespace syncopate {
namespace {

// All tasks listen before the first one connects, so connecting takes milliseconds.
constexpr std::chrono::seconds kConnectTimeout{30};
constexpr std::uint32_t kMaxRingHelloBytes = 1024;
constexpr std::uint16_t kRingHello = 0x5249;
constexpr std::uint16_t kRingWelcome = 0x524A;
constexpr std::array<std::string_view, 2> kChannels = {"bulk", "small"};

struct RingTask {
  int first_rank = 0;
  int num_ranks = 1;
  Endpoint endpoint;  // where this task connects to the next rank
};

// The greeting that identifies a connection of the ring.
struct RingHello {
  int from = -1;
  int to = -1;
  std::string channel;
};

std::string to_text(const RingHello& hello) {
  return fmt::format("{} {} {}", hello.from, hello.to, hello.channel);
}

std::optional<RingHello> parse_ring_hello(const std::string& text) {
  std::istringstream words(text);
  RingHello hello;
  if (!(words >> hello.from >> hello.to >> hello.channel)) return std::nullopt;
  return hello;
}

std::uint16_t port_of(const Member& member, const std::string& text) {
  const auto port = parse_number<std::uint16_t>(text).value_or(0);
  if (port != 0) return port;
  throw PeerError(
      fmt::format("the ring: {} gave '{}' as its port, expected 1 to 65535; give all tasks the "
                  "same program, --collective and transport",
                  describe(member.index, member.host, member.pid), text.substr(0, 40)));
}

class RingBuilder {
 public:
  explicit RingBuilder(const CollectiveOptions& options)
      : membership_(options.membership),
        nonce_(membership_ == nullptr ? random_nonce() : membership_->nonce()),
        own_host_(own_host(options)),
        pending_(Listener(Endpoint{own_host_, 0}), nonce_, kMaxRingHelloBytes),
        address_{own_host_.empty() ? loopback_address() : own_host_, pending_.port()},
        own_address_(address_) {
    if (membership_ != nullptr && !options.link.is_plain()) {
      ring_.forwarder = std::make_shared<LinkForwarder>(
          Listener(Endpoint{host_for_others(membership_), 0}), pending_.port(), options.link);
      address_.port = ring_.forwarder->port();
    }
    if (membership_ == nullptr) {
      tasks_.push_back({0, options.num_local_ranks, address_});
    } else {
      exchange_ports();
    }
    // The timeout counts from the exchange of ports, which waits for the slowest task.
    deadline_ = Deadline::after(kConnectTimeout);
    const RingTask& mine = tasks_[own_task_];
    check(mine.num_ranks == options.num_local_ranks,
          "as many collectives as the membership has replicas of this task");
    ring_.size = tasks_.back().first_rank + tasks_.back().num_ranks;
    ring_.first_rank = mine.first_rank;
    ring_.links.resize(static_cast<std::size_t>(mine.num_ranks));
  }

  Ring build() {
    if (ring_.size == 1) return std::move(ring_);
    try {
      for (int local = 0; local < static_cast<int>(ring_.links.size()); ++local) {
        connect_to_next(local);
      }
      num_missing_ = kChannels.size() * ring_.links.size();
      while (num_missing_ > 0 || !unanswered_.empty()) accept_and_receive_answers();
    } catch (const PeerError& error) {
      throw PeerError(verdict_or(membership_, error.what()));
    }
    return std::move(ring_);
  }

 private:
  // Returns the host at which this task listens for others: the address that they know it by.
  static std::string host_for_others(const Membership* membership) {
    if (membership == nullptr) return loopback_address();
    const std::vector<Member>& members = membership->members();
    const std::string& own = members[static_cast<std::size_t>(membership->index())].address;
    // If a task reached rank 0 over loopback, tasks on its machine call it by the loopback address,
    // and tasks on other machines by an address of rank 0's.
    const bool is_one_machine = std::ranges::all_of(
        members, [](const Member& member) { return is_loopback(member.address); });
    return listening_endpoint(is_loopback(own) && !is_one_machine ? "" : own, 0).host;
  }

  // With an emulated link only the forwarder calls, from this machine.
  static std::string own_host(const CollectiveOptions& options) {
    return options.link.is_plain() ? host_for_others(options.membership) : loopback_address();
  }

  // A started connection to the next rank that has not yet been answered by a kRingWelcome.
  struct Unanswered {
    Connection connection;
    OutgoingGreeting greeting;
    FileDescriptor* link = nullptr;  // stores the socket when the answer has come
  };

  void exchange_ports() {
    own_task_ = static_cast<std::size_t>(membership_->index());
    const std::vector<std::string> ports = membership_->exchange(std::to_string(address_.port));
    for (const Member& member : membership_->members()) {
      const auto index = static_cast<std::size_t>(member.index);
      const bool is_own = index == own_task_;
      if (is_own) address_.host = member.address;
      // Ranks of one task connect directly, not through the emulated slow link.
      tasks_.push_back(
          {member.first_replica, member.num_replicas,
           is_own ? own_address_ : Endpoint{member.address, port_of(member, ports[index])}});
    }
  }

  const RingTask& task_of(int rank) const {
    for (const RingTask& task : tasks_) {
      if (rank < task.first_rank + task.num_ranks) return task;
    }
    throw InternalError(fmt::format("the ring has no rank {}", rank));
  }

  void connect_to_next(int local) {
    const int rank = ring_.first_rank + local;
    const int next = (rank + 1) % ring_.size;
    const RingTask& task = task_of(next);
    RingLinks& links = ring_.links[static_cast<std::size_t>(local)];
    const std::array to_next = {&links.bulk_to_next, &links.small_to_next};
    for (std::size_t channel = 0; channel < kChannels.size(); ++channel) {
      const RingHello hello{rank, next, std::string(kChannels[channel])};
      Unanswered unanswered{connect_to(task.endpoint, fmt::format("rank {}", next), deadline_),
                            OutgoingGreeting(nonce_, {kRingHello, to_text(hello)}, /*refusal=*/0),
                            to_next[channel]};
      OutgoingGreeting::begin(unanswered.connection, deadline_);
      unanswered_.push_back(std::move(unanswered));
    }
  }

  // Outgoing and incoming connections are handled in one poll() loop, because ranks of one task
  // connect to each other, and because a connection that sends nothing must not block the others.
  void accept_and_receive_answers() {
    if (membership_ != nullptr) {
      if (const auto failure = membership_->failure()) throw PeerError(*failure);
    }
    if (deadline_.passed()) throw PeerError(describe_missing_link());
    std::vector<pollfd> events;
    pending_.add_to(events);
    for (const Unanswered& unanswered : unanswered_) {
      events.push_back({unanswered.connection.descriptor(), POLLIN, 0});
    }
    (void)poll(events.data(), events.size(), kPollMilliseconds);
    for (PendingConnections::Arrival& arrival : pending_.receive()) {
      on_hello(arrival);
    }
    std::erase_if(unanswered_, [&](Unanswered& unanswered) { return on_answer(unanswered); });
  }

  // Returns whether the next rank has answered the hello, and then stores the connection's socket.
  // Before the answer no bulk data may be sent: the peer would read it together with the hello.
  static bool on_answer(Unanswered& unanswered) {
    const std::optional<Frame> frame = unanswered.greeting.try_receive(unanswered.connection);
    if (!frame) return false;
    if (frame->type != kRingWelcome) {
      throw PeerError(fmt::format("{} is not of the ring: it answered with a frame of type {}",
                                  unanswered.connection.peer(), frame->type));
    }
    *unanswered.link = unanswered.connection.release();
    return true;
  }

  void on_hello(PendingConnections::Arrival& arrival) {
    Connection& connection = arrival.connection;
    const std::optional<RingHello> hello = parse_ring_hello(arrival.frame.payload);
    FileDescriptor* const link =
        arrival.is_of_job && arrival.frame.type == kRingHello && hello ? link_for(*hello) : nullptr;
    if (link == nullptr) {
      return pending_.warn_rejected(connection.peer(), "it has no place in the ring of this job");
    }
    try {
      connection.send({kRingWelcome, ""}, deadline_);
    } catch (const PeerError& error) {
      return pending_.warn_rejected(connection.peer(), error.what());
    }
    *link = connection.release();
    --num_missing_;
  }

  // Returns where to store the socket of the link that the hello names; null if this task has no
  // such link or the link is already connected.
  FileDescriptor* link_for(const RingHello& hello) {
    const int local = hello.to - ring_.first_rank;
    if (local < 0 || local >= static_cast<int>(ring_.links.size())) return nullptr;
    if (hello.from != (hello.to + ring_.size - 1) % ring_.size) return nullptr;
    RingLinks& links = ring_.links[static_cast<std::size_t>(local)];
    FileDescriptor* link = nullptr;
    if (hello.channel == kChannels[0]) link = &links.bulk_from_previous;
    if (hello.channel == kChannels[1]) link = &links.small_from_previous;
    return link == nullptr || *link ? nullptr : link;
  }

  std::string describe_missing_link() const {
    for (std::size_t local = 0; local < ring_.links.size(); ++local) {
      const RingLinks& links = ring_.links[local];
      if (links.bulk_from_previous && links.small_from_previous) continue;
      const int rank = ring_.first_rank + static_cast<int>(local);
      const int previous = (rank + ring_.size - 1) % ring_.size;
      return fmt::format(
          "the ring: rank {} did not connect to rank {} in time; can its host reach {}?", previous,
          rank, to_string(address_));
    }
    return fmt::format(
        "the ring: {} accepted the connection and did not answer in time; is it stopped, or busy?",
        unanswered_.front().connection.peer());
  }

  static constexpr int kPollMilliseconds = 100;

  Membership* membership_;
  std::string nonce_;
  const std::string own_host_;  // where pending_ listens; "": at every interface
  PendingConnections pending_;
  Endpoint address_;            // where other tasks connect to this one
  const Endpoint own_address_;  // where this task's ranks connect to each other
  Deadline deadline_ = Deadline::after(kConnectTimeout);
  std::vector<RingTask> tasks_;
  std::size_t own_task_ = 0;
  std::size_t num_missing_ = 0;  // links from the previous ranks that are not connected yet
  std::vector<Unanswered> unanswered_;
  Ring ring_;
};

}  // namespace

Ring connect_ring(const CollectiveOptions& options) { return RingBuilder(options).build(); }

}  // namespace syncopate
