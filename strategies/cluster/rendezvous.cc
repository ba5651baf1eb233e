#include "strategies/cluster/rendezvous.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "models/base/secret.h"
#include "ps/net/socket.h"
#include "strategies/cluster/outgoing_greeting.h"
#include "strategies/cluster/pending_connections.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

constexpr std::uint32_t kMaxHelloBytes = 1U << 20;
// Rank 0 detects a timeout itself and knows the missing task. The other tasks wait this much
// longer, to receive rank 0's message.
constexpr milliseconds kRefusalGrace(1000);

std::string ranks_text(const std::vector<int>& indices) {
  std::string text;
  for (const int index : indices) {
    text += fmt::format("{}rank {}", text.empty() ? "" : ", ", index);
  }
  return text;
}

// Rank 0's side of one rendezvous: accepts the other tasks and sends them the roster.
class TaskAcceptor {
 public:
  TaskAcceptor(const Hello& own, Listener listener, const Endpoint& endpoint, milliseconds timeout,
               const Objection& objection)
      : own_(own),
        objection_(objection),
        pending_(std::move(listener), own.nonce, kMaxHelloBytes),
        where_(to_string(endpoint)),
        deadline_(Deadline::after(timeout)) {}

  ConnectedTask accept_all() {
    while (static_cast<int>(tasks_.size()) + 1 < own_.world_size) {
      if (deadline_.passed()) refuse_all({describe_missing(), false});
      wait();
      for (PendingConnections::Arrival& arrival : pending_.receive()) on_hello(std::move(arrival));
      check_accepted();
    }
    return send_rosters();
  }

 private:
  // A task that has sent rank 0 a valid hello, with its connection.
  struct AcceptedTask {
    Hello hello;
    Connection connection;
  };

  void wait() const {
    std::vector<pollfd> sockets;
    pending_.add_to(sockets);
    for (const AcceptedTask& task : tasks_) {
      sockets.push_back({task.connection.descriptor(), POLLIN, 0});
    }
    poll(sockets.data(), sockets.size(), pending_.poll_milliseconds(deadline_));
  }

  void on_hello(PendingConnections::Arrival arrival) {
    Hello hello;
    try {
      hello = decode_hello(arrival.frame);
    } catch (const PeerError& error) {
      return pending_.warn_rejected(arrival.connection.peer(), error.what());
    }
    if (!arrival.is_of_job) return refuse_stranger(arrival.connection, hello);
    accept(std::move(arrival.connection), std::move(hello));
  }

  void refuse_stranger(Connection& connection, const Hello& hello) {
    const std::string name = describe(hello.index, hello.host, hello.pid);
    pending_.warn_rejected(connection.peer(),
                           fmt::format("{} belongs to another job: {}", name, kOtherNonce));
    send_refusal(connection,
                 {fmt::format("rank 0 at {} belongs to another job than {}: {}; is one of them "
                              "left from an earlier run, or do two jobs share a port?",
                              where_, name, kOtherNonce)});
  }

  // Accepted tasks send nothing during the rendezvous, so reading shows only that a task has died.
  void check_accepted() {
    for (AcceptedTask& task : tasks_) {
      try {
        task.connection.try_receive();
      } catch (const PeerError& error) {
        refuse_all({fmt::format("{} before all {} tasks had come to {}", error.what(),
                                own_.world_size, where_),
                    false});
      }
    }
  }

  // Accepts a task of this job. Ends the job when the task does not fit.
  void accept(Connection connection, Hello hello) {
    connection.set_peer(describe(hello.index, hello.host, hello.pid));
    tasks_.push_back({std::move(hello), std::move(connection)});
    AcceptedTask& task = tasks_.back();
    const std::string conflict = find_conflict(task.hello);
    if (!conflict.empty()) refuse_all({conflict});
    if (const std::string line = differences(own_, task.hello, false); !line.empty()) {
      log(LogLevel::kWarning, line);
    }
    task.connection.queue(
        encode(Welcome{milliseconds(deadline_.remaining_milliseconds()), own_.host, own_.pid}));
    flush(task.connection);
  }

  static void flush(Connection& connection) {
    try {
      connection.flush();
    } catch (const PeerError&) {
      // An error of sending is ignored: the next read of the connection fails too and reports it.
    }
  }

  std::string find_conflict(const Hello& hello) const {
    if (hello.world_size != own_.world_size) {
      return fmt::format(
          "rank {} has a world of {} tasks, rank 0 a world of {}; give all tasks the same "
          "--world-size",
          hello.index, hello.world_size, own_.world_size);
    }
    if (hello.index < 0 || hello.index >= own_.world_size) {
      return fmt::format("{} is not of this world: its {} tasks are rank 0 to rank {}",
                         describe(hello.index, hello.host, hello.pid), own_.world_size,
                         own_.world_size - 1);
    }
    const Hello* first = hello.index == 0 ? &own_ : nullptr;
    for (const AcceptedTask& task : tasks_) {
      if (first == nullptr && task.hello.index == hello.index) first = &task.hello;
    }
    if (first != nullptr && first != &hello) {
      return fmt::format(
          "two tasks have rank {}: pid {} on host {} and pid {} on host {}; give each "
          "its own --rank",
          hello.index, first->pid, first->host, hello.pid, hello.host);
    }
    if (hello.num_replicas < 1) {
      return fmt::format("rank {} has {} replicas; expected at least 1", hello.index,
                         hello.num_replicas);
    }
    if (const std::string line = differences(own_, hello, true); !line.empty()) {
      return line + "; give all tasks the same";
    }
    return objection_ ? objection_(hello) : "";
  }

  std::string describe_missing() const {
    std::vector<int> missing;
    for (int index = 1; index < own_.world_size; ++index) {
      if (std::ranges::none_of(
              tasks_, [&](const AcceptedTask& task) { return task.hello.index == index; })) {
        missing.push_back(index);
      }
    }
    return fmt::format(
        "{} of {} tasks came to {} within {}; missing: {}; are they running, and can they reach "
        "this address? (--rendezvous-timeout gives them longer)",
        tasks_.size() + 1, own_.world_size, where_, in_seconds(deadline_.timeout()),
        ranks_text(missing));
  }

  static void send_refusal(Connection& connection, const Refusal& refusal) {
    try {
      connection.send(encode(refusal), Deadline::after(std::chrono::seconds(1)));
    } catch (const PeerError&) {
      // The refusal cannot be sent, so the task is gone and does not need it.
    }
  }

  [[noreturn]] void refuse_all(const Refusal& refusal) {
    for (AcceptedTask& task : tasks_) send_refusal(task.connection, refusal);
    if (refusal.is_usage_error) throw UsageError(refusal.line);
    throw PeerError(refusal.line);
  }

  ConnectedTask send_rosters() {
    std::ranges::sort(tasks_, {}, [](const AcceptedTask& task) { return task.hello.index; });
    std::vector<Hello> hellos{own_};
    // The first address in the roster is rank 0's, at which rank 0 listens to the others: each task
    // replaces it by the address that the task connected to.
    std::vector<std::string> addresses{address_for_all()};
    ConnectedTask connected;
    for (AcceptedTask& task : tasks_) {
      hellos.push_back(std::move(task.hello));
      addresses.push_back(task.connection.remote_address());
      connected.connections.push_back(std::move(task.connection));
    }
    connected.roster = make_roster(hellos, addresses);
    for (Connection& connection : connected.connections) {
      connection.limit_payload(kLongestPayload);
      connection.queue(encode(connected.roster));
      flush(connection);
    }
    return connected;
  }

  // The address that all tasks connected to; "0.0.0.0" if they used several.
  std::string address_for_all() const {
    const std::string first = tasks_[0].connection.local_address();
    const bool is_one = std::ranges::all_of(
        tasks_, [&](const AcceptedTask& task) { return task.connection.local_address() == first; });
    return is_one ? first : "0.0.0.0";
  }

  const Hello& own_;
  const Objection& objection_;
  PendingConnections pending_;
  std::string where_;
  Deadline deadline_;
  std::vector<AcceptedTask> tasks_;
};

// Throws the error that rank 0 sent, if the frame is a refusal.
Frame unless_refused(Frame frame) {
  if (frame.type != kRejected) return frame;
  const Refusal refusal = decode_refusal(frame);
  if (refusal.is_usage_error) throw UsageError(refusal.line);
  throw PeerError(refusal.line);
}

// Replaces the addresses that only rank 0 can use. A task that connected to rank 0 over loopback
// runs on rank 0's machine.
void correct_addresses(std::vector<Member>& members, const std::string& rank_zero) {
  for (Member& member : members) {
    if (member.index == 0 || is_loopback(member.address)) member.address = rank_zero;
  }
}

}  // namespace

ConnectedTask accept_tasks(const Hello& hello, Listener listener, const Endpoint& endpoint,
                           milliseconds timeout, const Objection& objection) {
  return TaskAcceptor(hello, std::move(listener), endpoint, timeout, objection).accept_all();
}

ConnectedTask connect_to_rank_zero(const Hello& hello, const Endpoint& endpoint,
                                   milliseconds timeout, milliseconds listens_first) {
  const Deadline deadline = Deadline::after(timeout);
  Connection rank_zero = connect_to(endpoint, "rank 0", deadline);
  rank_zero.set_peer(
      fmt::format("rank 0 at {}, which rank {} called", to_string(endpoint), hello.index));
  if (wait_ready(rank_zero.descriptor(), POLLIN, Deadline::after(listens_first))) {
    rank_zero.try_receive();  // throws PeerError for another program
  }
  OutgoingGreeting greeting(hello.nonce, encode(hello), kRejected);
  OutgoingGreeting::begin(rank_zero, deadline);
  Frame frame = unless_refused(greeting.receive(rank_zero, Deadline::after(timeout)));
  if (frame.type == kWelcome) {
    const Welcome welcome = decode_welcome(frame);
    rank_zero.set_peer(describe(0, welcome.host, welcome.pid));
    frame = unless_refused(rank_zero.receive(Deadline::after(welcome.timeout + kRefusalGrace)));
  }
  ConnectedTask connected{hello.index, decode_roster(frame), {}};
  connected.roster.nonce = run_nonce(hello.nonce, connected.roster.salt);
  correct_addresses(connected.roster.members, rank_zero.remote_address());
  connected.connections.push_back(std::move(rank_zero));
  return connected;
}

}  // namespace syncopate
