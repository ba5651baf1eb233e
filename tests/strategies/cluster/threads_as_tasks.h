// Runs the tasks of a job as threads of one test. Each thread joins the cluster as a process would.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "strategies/cluster/handshake.h"
#include "strategies/cluster/membership.h"
#include "strategies/cluster/outgoing_greeting.h"

namespace syncopate {

// The result of joining the cluster, for one task: one of the three members is set.
struct Joined {
  std::unique_ptr<Membership> membership;
  std::string usage_error;
  std::string peer_error;
};

inline Joined join(const ClusterSpec& spec, const MembershipOptions& options) {
  Joined joined;
  try {
    joined.membership = join_cluster(spec, options);
  } catch (const UsageError& error) {
    joined.usage_error = error.what();
  } catch (const PeerError& error) {
    joined.peer_error = error.what();
  }
  return joined;
}

// Calls task(i) for i in [0, count) at the same time, each on its own thread.
inline void at_once(int count, const std::function<void(int)>& task) {
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back([&task, i] { task(i); });
}

// Waits until `condition` holds. Returns false when `condition` does not hold within the timeout.
inline bool eventually(const std::function<bool()>& condition,
                       std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  const Deadline deadline = Deadline::after(timeout);
  while (!condition()) {
    if (deadline.passed()) return false;
    std::this_thread::yield();
  }
  return true;
}

// The rendezvous of a test job. Rank 0 inherits the listening socket, as from `syncopate launch`.
class TestRendezvous {
 public:
  TestRendezvous()
      : listener_(Endpoint{"127.0.0.1", 0}), endpoint_{"127.0.0.1", listener_.port()} {}

  const Endpoint& endpoint() const { return endpoint_; }
  Listener take_listener() { return std::move(listener_); }

  // Returns the ClusterSpec of one task. Call it once only for rank 0, which takes the socket.
  ClusterSpec spec(int index, int world_size, std::string nonce = "job") {
    ClusterSpec spec;
    spec.index = index;
    spec.world_size = world_size;
    spec.rendezvous.endpoint = endpoint_;
    spec.nonce = std::move(nonce);
    if (index == 0) spec.rendezvous.descriptor = listener_.release().release();
    return spec;
  }

 private:
  Listener listener_;
  Endpoint endpoint_;
};

inline MembershipOptions quick_options() {
  return {.rendezvous_timeout = std::chrono::seconds(60),
          .exchange_timeout = std::chrono::seconds(60),
          .peer_timeout = std::chrono::seconds(20)};
}

// Joins all tasks of a job and returns their memberships by index.
inline std::vector<std::unique_ptr<Membership>> meet(int world_size) {
  TestRendezvous place;
  std::vector<ClusterSpec> specs;
  specs.reserve(static_cast<std::size_t>(world_size));
  for (int i = 0; i < world_size; ++i) specs.push_back(place.spec(i, world_size));
  std::vector<std::unique_ptr<Membership>> tasks(specs.size());
  at_once(world_size, [&](int i) {
    const auto index = static_cast<std::size_t>(i);
    Joined joined = join(specs[index], quick_options());
    EXPECT_EQ(joined.usage_error + joined.peer_error, "") << "rank " << i;
    tasks[index] = std::move(joined.membership);
  });
  return tasks;
}

// Greets rank 0 with the nonce "job" and returns its first answer.
inline Frame greet_rank_zero(Connection& rank_zero, const Hello& hello, const Deadline& deadline) {
  OutgoingGreeting greeting("job", encode(hello), kRejected);
  OutgoingGreeting::begin(rank_zero, deadline);
  return greeting.receive(rank_zero, deadline);
}

// Answers the greeting of a caller that has this nonce, as PendingConnections does. Returns what
// the caller introduced itself with.
inline Frame answer_greeting(Connection& caller, const std::string& nonce,
                             const Deadline& deadline) {
  const GreetingListener listener(nonce);
  EXPECT_EQ(caller.receive(deadline).type, kGreetingCall);
  caller.send({kGreetingChallenge, listener.challenge()}, deadline);
  Frame hello = caller.receive(deadline);
  const std::string seal = hello.payload.substr(0, kSealBytes);
  hello.payload.erase(0, kSealBytes);
  const auto proof = listener.check(hello.payload, seal);
  EXPECT_TRUE(proof);
  caller.send({kGreetingProof, proof.value_or("")}, deadline);
  return hello;
}

}  // namespace syncopate
