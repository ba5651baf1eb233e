#include <poll.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "strategies/cluster/callers.h"
#include "strategies/cluster/meeting.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kLongestHello = 1U << 20;

std::string ranks(const std::vector<int>& indices) {
  std::string text;
  for (const int index : indices) {
    if (!text.empty()) text += ", ";
    text += "rank " + std::to_string(index);
  }
  return text;
}

// One rendezvous, at rank 0.
class Reception {
 public:
  Reception(const Hello& own, Listener listener, const Endpoint& endpoint, milliseconds patience,
            const Objection& objection)
      : own_(own),
        objection_(objection),
        callers_(std::move(listener), kLongestHello),
        where_(to_string(endpoint)),
        deadline_(Deadline::after(patience)) {}

  Meeting receive_all() {
    while (static_cast<int>(guests_.size()) + 1 < own_.world_size) {
      if (deadline_.passed()) refuse_all({describe_missing(), false});
      wait();
      for (Callers::Heard& caller : callers_.hear()) listen_to(std::move(caller));
      listen_to_guests();
    }
    return conclude();
  }

 private:
  // Has said hello, and it was a good one.
  struct Guest {
    Hello hello;
    Connection connection;
  };

  void wait() const {
    std::vector<pollfd> sockets;
    callers_.add_to(sockets);
    for (const Guest& guest : guests_)
      sockets.push_back({guest.connection.descriptor(), POLLIN, 0});
    poll(sockets.data(), sockets.size(), callers_.poll_milliseconds(deadline_));
  }

  void listen_to(Callers::Heard caller) {
    Hello hello;
    try {
      hello = decode_hello(caller.frame);
    } catch (const PeerError& error) {
      return warn_turned_away(caller.connection.peer(), error.what());
    }
    greet(std::move(caller.connection), std::move(hello));
  }

  void listen_to_guests() {
    for (Guest& guest : guests_) {
      try {
        guest.connection.try_receive();
      } catch (const PeerError& error) {
        refuse_all({std::string(error.what()) + " before all " + std::to_string(own_.world_size) +
                        " tasks had come to " + where_,
                    false});
      }
    }
  }

  // Ends the job unless the caller is a stranger or fits.
  void greet(Connection caller, Hello hello) {
    const std::string who = describe(hello.index, hello.host, hello.pid);
    if (hello.nonce != own_.nonce) {
      warn_turned_away(caller.peer(), who + " belongs to another job");
      dismiss(caller, {"rank 0 at " + where_ + " belongs to another job than " + who +
                       ": is one of them left from an earlier run, or do two jobs share a port?"});
      return;
    }
    caller.set_peer(who);
    guests_.push_back({std::move(hello), std::move(caller)});
    Guest& guest = guests_.back();
    const std::string conflict = find_conflict(guest.hello);
    if (!conflict.empty()) refuse_all({conflict});
    if (const std::string line = differences(own_, guest.hello, false); !line.empty()) {
      log(LogLevel::kWarning, line);
    }
    welcome(guest);
  }

  void welcome(Guest& guest) const {
    guest.connection.queue(
        encode(Welcome{milliseconds(deadline_.remaining_milliseconds()), own_.host, own_.pid}));
    flush(guest.connection);
  }

  static void flush(Connection& connection) {
    try {
      connection.flush();
    } catch (const PeerError&) {
      // Whoever reads from it next finds the same, and says so.
    }
  }

  std::string find_conflict(const Hello& hello) const {
    const std::string rank = "rank " + std::to_string(hello.index);
    if (hello.world_size != own_.world_size) {
      return rank + " was told a world of " + std::to_string(hello.world_size) +
             " tasks, rank 0 a world of " + std::to_string(own_.world_size) +
             "; give all tasks the same --world-size";
    }
    if (hello.index < 0 || hello.index >= own_.world_size) {
      return describe(hello.index, hello.host, hello.pid) + " is not of this world: its " +
             std::to_string(own_.world_size) + " tasks are rank 0 to rank " +
             std::to_string(own_.world_size - 1);
    }
    const Hello* first = hello.index == 0 ? &own_ : nullptr;
    for (const Guest& guest : guests_) {
      if (first == nullptr && guest.hello.index == hello.index) first = &guest.hello;
    }
    if (first != nullptr && first != &hello) {
      return "two tasks say that they are " + rank + ": pid " + std::to_string(first->pid) +
             " on host " + first->host + " and pid " + std::to_string(hello.pid) + " on host " +
             hello.host + "; give each its own --rank";
    }
    if (hello.num_replicas < 1) {
      return rank + " has " + std::to_string(hello.num_replicas) + " replicas; expected at least 1";
    }
    if (const std::string line = differences(own_, hello, true); !line.empty()) {
      return line + "; give all tasks the same";
    }
    return objection_ ? objection_(hello) : "";
  }

  std::string describe_missing() const {
    std::vector<int> missing;
    for (int index = 1; index < own_.world_size; ++index) {
      if (std::ranges::none_of(guests_, [&](const Guest& g) { return g.hello.index == index; })) {
        missing.push_back(index);
      }
    }
    return std::to_string(guests_.size() + 1) + " of " + std::to_string(own_.world_size) +
           " tasks came to " + where_ + " within " + in_seconds(deadline_.patience()) +
           "; missing: " + ranks(missing) +
           "; are they running, and can they reach this address? (--rendezvous-timeout gives them "
           "longer)";
  }

  static void dismiss(Connection& caller, const Refusal& refusal) {
    try {
      caller.send(encode(refusal), Deadline::after(seconds(1)));
    } catch (const PeerError&) {
      // It has gone already.
    }
  }

  [[noreturn]] void refuse_all(const Refusal& refusal) {
    for (Guest& guest : guests_) dismiss(guest.connection, refusal);
    if (refusal.is_usage_error) throw UsageError(refusal.line);
    throw PeerError(refusal.line);
  }

  Meeting conclude() {
    std::ranges::sort(guests_, {}, [](const Guest& guest) { return guest.hello.index; });
    std::vector<Hello> hellos{own_};
    // Its own address as another one called it; the others put there what they called.
    std::vector<std::string> addresses{guests_[0].connection.local_address()};
    Meeting meeting;
    for (Guest& guest : guests_) {
      hellos.push_back(std::move(guest.hello));
      addresses.push_back(guest.connection.remote_address());
      meeting.connections.push_back(std::move(guest.connection));
    }
    meeting.roster = make_roster(hellos, addresses);
    for (Connection& connection : meeting.connections) {
      connection.limit_payload(kLongestPayload);
      connection.queue(encode(meeting.roster));
      flush(connection);
    }
    return meeting;
  }

  const Hello& own_;
  const Objection& objection_;
  Callers callers_;
  std::string where_;
  Deadline deadline_;
  std::vector<Guest> guests_;
};

}  // namespace

Meeting wait_for_callers(const Hello& hello, Listener listener, const Endpoint& endpoint,
                         milliseconds patience, const Objection& objection) {
  return Reception(hello, std::move(listener), endpoint, patience, objection).receive_all();
}

}  // namespace syncopate
