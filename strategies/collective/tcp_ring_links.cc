#include "strategies/collective/tcp_ring_links.h"

#include <poll.h>

#include <array>
#include <chrono>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>

#include "models/base/connection.h"
#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// All have said that they listen, so what takes longer than this does not come.
constexpr seconds kSetUpTime{30};
constexpr std::uint16_t kRingHello = 0x5249;
constexpr std::uint16_t kRingWelcome = 0x524A;
constexpr std::array<std::string_view, 2> kChannels = {"bulk", "small"};

struct Task {
  int first_rank = 0;
  int num_ranks = 1;
  std::string host;
  std::uint16_t port = 0;
};

struct Hello {
  std::string nonce;
  int from = -1;
  int to = -1;
  std::string channel;
};

std::string to_text(const Hello& hello) {
  return hello.nonce + " " + std::to_string(hello.from) + " " + std::to_string(hello.to) + " " +
         hello.channel;
}

std::optional<Hello> parse_hello(const std::string& text) {
  std::istringstream words(text);
  Hello hello;
  if (!(words >> hello.nonce >> hello.from >> hello.to >> hello.channel)) return std::nullopt;
  return hello;
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
        deadline_(Deadline::after(kSetUpTime)),
        listener_(Endpoint{membership_ == nullptr ? "127.0.0.1" : "", 0}) {
    if (membership_ == nullptr) {
      nonce_ = random_nonce();
      tasks_.push_back({0, options.num_local_ranks, "127.0.0.1", listener_.port()});
    } else {
      meet_tasks();
    }
    const Task& mine = tasks_[own_task_];
    check(mine.num_ranks == options.num_local_ranks,
          "as many collectives as the membership has replicas of this task");
    ring_.size = tasks_.back().first_rank + tasks_.back().num_ranks;
    ring_.first_rank = mine.first_rank;
    ring_.links.resize(static_cast<std::size_t>(mine.num_ranks));
  }

  Ring build() {
    if (ring_.size == 1) return std::move(ring_);
    for (int local = 0; local < static_cast<int>(ring_.links.size()); ++local) call_next(local);
    missing_ = kChannels.size() * ring_.links.size();
    while (missing_ > 0 || !calls_.empty()) answer_and_be_answered();
    return std::move(ring_);
  }

 private:
  // To the next rank, not answered yet.
  struct Call {
    Connection connection;
    FileDescriptor* place = nullptr;
  };

  void meet_tasks() {
    nonce_ = membership_->nonce();
    own_task_ = static_cast<std::size_t>(membership_->index());
    const std::vector<std::string> ports = membership_->exchange(std::to_string(listener_.port()));
    for (const Member& member : membership_->members()) {
      const auto index = static_cast<std::size_t>(member.index);
      tasks_.push_back({member.first_replica, member.num_replicas,
                        index == own_task_ ? "127.0.0.1" : member.address,
                        static_cast<std::uint16_t>(std::stoul(ports[index]))});
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
      Call call{connect_to({task.host, task.port}, "rank " + std::to_string(next), deadline_),
                places[channel]};
      const Hello hello{nonce_, rank, next, std::string(kChannels[channel])};
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
    std::vector<pollfd> events = {{listener_.descriptor(), POLLIN, 0}};
    for (const Connection& caller : callers_) events.push_back({caller.descriptor(), POLLIN, 0});
    for (const Call& call : calls_) events.push_back({call.connection.descriptor(), POLLIN, 0});
    (void)poll(events.data(), events.size(), kPollMilliseconds);
    while (auto caller = listener_.accept(Deadline::after(milliseconds(0)))) {
      callers_.push_back(std::move(*caller));
    }
    std::erase_if(callers_, [&](Connection& caller) { return is_settled(caller); });
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

  // Whether the caller has been given its place or is turned away.
  bool is_settled(Connection& caller) {
    try {
      const std::optional<Frame> frame = caller.try_receive();
      if (!frame) return false;
      const std::optional<Hello> hello = parse_hello(frame->payload);
      FileDescriptor* const place = frame->type == kRingHello && hello && hello->nonce == nonce_
                                        ? place_for(*hello)
                                        : nullptr;
      if (place == nullptr) {
        log(LogLevel::kWarning,
            "the ring turned away a caller that is not of this job: " + caller.peer());
        return true;
      }
      caller.send({kRingWelcome, ""}, deadline_);
      *place = caller.release();
      --missing_;
    } catch (const PeerError& error) {
      log(LogLevel::kWarning, std::string("the ring turned away a caller: ") + error.what());
    }
    return true;
  }

  // Null: no such place, or it is taken.
  FileDescriptor* place_for(const Hello& hello) {
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
             std::to_string(rank) + " in time; can its host reach port " +
             std::to_string(listener_.port()) + " of this one (" + task_of(rank).host + ")?";
    }
    return "the ring: " + calls_.front().connection.peer() + " took the connection and did not " +
           "answer in time; is it stopped, or busy?";
  }

  static constexpr int kPollMilliseconds = 100;

  Membership* membership_;
  Deadline deadline_;
  Listener listener_;
  std::string nonce_;
  std::vector<Task> tasks_;
  std::size_t own_task_ = 0;
  std::vector<Connection> callers_;  // who have not said yet who they are
  std::size_t missing_ = 0;          // places of callers
  std::vector<Call> calls_;
  Ring ring_;
};

}  // namespace

Ring connect_ring(const CollectiveOptions& options) { return RingBuilder(options).build(); }

}  // namespace syncopate
