#include "strategies/collective/tcp_ring_links.h"

#include <poll.h>

#include <array>
#include <charconv>
#include <chrono>
#include <iterator>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "strategies/cluster/callers.h"
#include "strategies/cluster/hello.h"

namespace syncopate {
namespace {

using std::chrono::seconds;

// All have said that they listen, so what takes longer than this does not come.
constexpr seconds kSetUpTime{30};
constexpr std::uint32_t kLongestHello = 1024;  // but for the nonce
constexpr std::uint16_t kRingHello = 0x5249;
constexpr std::uint16_t kRingWelcome = 0x524A;
constexpr std::array<std::string_view, 2> kChannels = {"bulk", "small"};

struct Task {
  int first_rank = 0;
  int num_ranks = 1;
  Endpoint endpoint;  // where this task calls it
};

struct RingHello {
  int from = -1;
  int to = -1;
  std::string channel;
  std::string nonce;  // the last, for it may hold any bytes
};

std::string to_text(const RingHello& hello) {
  return std::to_string(hello.from) + " " + std::to_string(hello.to) + " " + hello.channel + " " +
         hello.nonce;
}

std::optional<RingHello> parse_hello(const std::string& text) {
  std::istringstream words(text);
  RingHello hello;
  if (!(words >> hello.from >> hello.to >> hello.channel)) return std::nullopt;
  words.get();
  hello.nonce.assign(std::istreambuf_iterator<char>(words), {});
  return hello;
}

std::uint16_t port_of(const Member& member, const std::string& text) {
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, port);
  if (error == std::errc() && rest == end && port != 0) return port;
  throw PeerError("the ring: " + describe(member.index, member.host, member.pid) + " gave '" +
                  text.substr(0, 40) +
                  "' as its port, expected 1 to 65535; give all "
                  "tasks the same program, --collective and transport");
}

std::string random_nonce() {
  std::random_device random;
  std::string nonce;
  for (int i = 0; i < 4; ++i) nonce += std::to_string(random()) + ".";
  return nonce;
}

class RingBuilder {
 public:
  explicit RingBuilder(const CollectiveOptions& options)
      : membership_(options.membership),
        nonce_(membership_ == nullptr ? random_nonce() : membership_->nonce()),
        callers_(Listener(Endpoint{listening_host(options), 0}),
                 kLongestHello + static_cast<std::uint32_t>(nonce_.size())),
        address_{"127.0.0.1", callers_.port()} {
    if (membership_ != nullptr && !options.link.is_plain()) {
      ring_.forwarder =
          std::make_shared<LinkForwarder>(Listener(Endpoint{"", 0}), callers_.port(), options.link);
      address_.port = ring_.forwarder->port();
    }
    if (membership_ == nullptr) {
      tasks_.push_back({0, options.num_local_ranks, address_});
    } else {
      meet_tasks();
    }
    // Some may have come much later than we did.
    deadline_ = Deadline::after(kSetUpTime);
    const Task& mine = tasks_[own_task_];
    check(mine.num_ranks == options.num_local_ranks,
          "as many collectives as the membership has replicas of this task");
    ring_.size = tasks_.back().first_rank + tasks_.back().num_ranks;
    ring_.first_rank = mine.first_rank;
    ring_.links.resize(static_cast<std::size_t>(mine.num_ranks));
  }

  Ring build() {
    if (ring_.size == 1) return std::move(ring_);
    try {
      for (int local = 0; local < static_cast<int>(ring_.links.size()); ++local) call_next(local);
      missing_ = kChannels.size() * ring_.links.size();
      while (missing_ > 0 || !calls_.empty()) answer_and_be_answered();
    } catch (const PeerError& error) {
      throw PeerError(verdict_or(membership_, error.what()));
    }
    return std::move(ring_);
  }

 private:
  // Every interface, unless only we ourselves or a forwarder call.
  static std::string listening_host(const CollectiveOptions& options) {
    return options.membership != nullptr && options.link.is_plain() ? "" : "127.0.0.1";
  }

  // To the next rank, not answered yet.
  struct Call {
    Connection connection;
    FileDescriptor* place = nullptr;
  };

  void meet_tasks() {
    own_task_ = static_cast<std::size_t>(membership_->index());
    const std::vector<std::string> ports = membership_->exchange(std::to_string(address_.port));
    for (const Member& member : membership_->members()) {
      const auto index = static_cast<std::size_t>(member.index);
      const bool is_own = index == own_task_;
      if (is_own) address_.host = member.address;
      tasks_.push_back({member.first_replica, member.num_replicas,
                        is_own ? Endpoint{"127.0.0.1", callers_.port()}  // not through the link
                               : Endpoint{member.address, port_of(member, ports[index])}});
    }
  }

  const Task& task_of(int rank) const {
    for (const Task& task : tasks_) {
      if (rank < task.first_rank + task.num_ranks) return task;
    }
    throw InternalError("the ring has no rank " + std::to_string(rank));
  }

  void call_next(int local) {
    const int rank = ring_.first_rank + local;
    const int next = (rank + 1) % ring_.size;
    const Task& task = task_of(next);
    RingLinks& links = ring_.links[static_cast<std::size_t>(local)];
    const std::array places = {&links.bulk_to_next, &links.small_to_next};
    for (std::size_t channel = 0; channel < kChannels.size(); ++channel) {
      Call call{connect_to(task.endpoint, "rank " + std::to_string(next), deadline_),
                places[channel]};
      const RingHello hello{rank, next, std::string(kChannels[channel]), nonce_};
      call.connection.send({kRingHello, to_text(hello)}, deadline_);
      calls_.push_back(std::move(call));
    }
  }

  // All side by side: the ranks of one task call each other, and a stranger that connects and says
  // nothing holds up nobody.
  void answer_and_be_answered() {
    if (membership_ != nullptr) {
      if (const auto failure = membership_->failure()) throw PeerError(*failure);
    }
    if (deadline_.passed()) throw PeerError(describe_missing());
    std::vector<pollfd> events;
    callers_.add_to(events);
    for (const Call& call : calls_) events.push_back({call.connection.descriptor(), POLLIN, 0});
    (void)poll(events.data(), events.size(), kPollMilliseconds);
    for (Callers::Heard& caller : callers_.hear()) take(caller.connection, caller.frame);
    std::erase_if(calls_, [&](Call& call) { return is_welcome(call); });
  }

  // Until then nothing may be sent: it would be read together with the hello.
  static bool is_welcome(Call& call) {
    const std::optional<Frame> frame = call.connection.try_receive();
    if (!frame) return false;
    if (frame->type != kRingWelcome) {
      throw PeerError(call.connection.peer() + " is not of the ring: it answered with a frame of " +
                      "type " + std::to_string(frame->type));
    }
    *call.place = call.connection.release();
    return true;
  }

  void take(Connection& caller, const Frame& frame) {
    const std::optional<RingHello> hello = parse_hello(frame.payload);
    FileDescriptor* const place =
        frame.type == kRingHello && hello && hello->nonce == nonce_ ? place_for(*hello) : nullptr;
    if (place == nullptr) {
      return warn_turned_away(caller.peer(), "it has no place in the ring of this job");
    }
    try {
      caller.send({kRingWelcome, ""}, deadline_);
    } catch (const PeerError& error) {
      return warn_turned_away(caller.peer(), error.what());
    }
    *place = caller.release();
    --missing_;
  }

  // Null: no such place, or it is taken.
  FileDescriptor* place_for(const RingHello& hello) {
    const int local = hello.to - ring_.first_rank;
    if (local < 0 || local >= static_cast<int>(ring_.links.size())) return nullptr;
    if (hello.from != (hello.to + ring_.size - 1) % ring_.size) return nullptr;
    RingLinks& links = ring_.links[static_cast<std::size_t>(local)];
    FileDescriptor* place = nullptr;
    if (hello.channel == kChannels[0]) place = &links.bulk_from_previous;
    if (hello.channel == kChannels[1]) place = &links.small_from_previous;
    return place == nullptr || *place ? nullptr : place;
  }

  std::string describe_missing() const {
    for (std::size_t local = 0; local < ring_.links.size(); ++local) {
      const RingLinks& links = ring_.links[local];
      if (links.bulk_from_previous && links.small_from_previous) continue;
      const int rank = ring_.first_rank + static_cast<int>(local);
      const int previous = (rank + ring_.size - 1) % ring_.size;
      return "the ring: rank " + std::to_string(previous) + " did not connect to rank " +
             std::to_string(rank) + " in time; can its host reach " + to_string(address_) + "?";
    }
    return "the ring: " + calls_.front().connection.peer() + " took the connection and did not " +
           "answer in time; is it stopped, or busy?";
  }

  static constexpr int kPollMilliseconds = 100;

  Membership* membership_;
  std::string nonce_;
  Callers callers_;
  Endpoint address_;  // where others call this task
  Deadline deadline_ = Deadline::after(kSetUpTime);
  std::vector<Task> tasks_;
  std::size_t own_task_ = 0;
  std::size_t missing_ = 0;  // places of callers
  std::vector<Call> calls_;
  Ring ring_;
};

}  // namespace

Ring connect_ring(const CollectiveOptions& options) { return RingBuilder(options).build(); }

}  // namespace syncopate
