// The tasks of one job, met at rank 0 and watched until they leave: rendezvous, roster, heartbeats.
// It carries no gradients. A star: every task keeps one connection to rank 0, which passes on what
// all must know.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strategies/cluster/cluster_spec.h"

namespace syncopate {

// A task as the others know it. Its replicas are ranks first_replica .. first_replica +
// num_replicas - 1 of the collective.
struct Member {
  int index = 0;
  int first_replica = 0;
  int num_replicas = 1;
  std::string host;     // its own name for its machine
  std::string address;  // where the others reach it: rank 0 saw it come from there
  std::int64_t pid = 0;
};

// Compared at hello: a difference in a `must` entry ends the job, in another one it is a warning.
struct Agreement {
  std::string name;   // "--seed"
  std::string value;  // "1"
  bool must = true;
};

struct MembershipOptions {
  int num_replicas = 1;  // of this task
  std::vector<Agreement> agreements;
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(120);
  // For exchange() and leave(): whoever lives is waited for while it reads its data from a cold
  // disk or writes a checkpoint; whoever dies ends the waiting.
  std::chrono::milliseconds patience = std::chrono::seconds(600);
  // From the loss of a task to the end of all others. 0: 5 s when all tasks are on one machine,
  // else 15 s.
  std::chrono::milliseconds peer_timeout{0};
};

// Thread-safe but for exchange() and leave(), which are the training thread's.
class Membership {
 public:
  virtual ~Membership() = default;  // without leave(): the others take it for a failure

  virtual int index() const noexcept = 0;
  virtual const std::vector<Member>& members() const noexcept = 0;  // by index
  virtual const std::string& nonce() const noexcept = 0;
  virtual std::chrono::milliseconds peer_timeout() const noexcept = 0;

  // Everyone's text, by index; every task calls it in the same order. For set-up: ports, names.
  // Throws PeerError.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;

  // Who died, where and when it was last heard of, once known; nothing else is ever set.
  virtual std::optional<std::string> failure() const = 0;
  // Called once, from the watching thread, or at once when it has already happened. It must not
  // wait. An empty function takes the subscription back.
  virtual void on_failure(std::function<void(const std::string& reason)> callback) = 0;

  // How far this task is; the others hear it with the heartbeat and name it should we die.
  virtual void report_step(std::int64_t step) noexcept = 0;

  // All is done: returns when every task has said so. Throws PeerError.
  virtual void leave() = 0;
  // We end because of `reason`: the others are told, and end too.
  virtual void fail(std::string_view reason) noexcept = 0;
};

// Meets the others: rank 0 listens, the others call. Throws UsageError (agreements differ, two
// tasks of one rank, another world size, a port in use), PeerError (a task did not come in time, a
// stranger's answer): the same line on every task that was reached.
std::unique_ptr<Membership> join_cluster(const ClusterSpec& spec, const MembershipOptions& options);

// Why a connection to another task broke: the verdict, which may be up to a second behind, or else
// what the socket says. `membership` may be null.
std::string verdict_or(const Membership* membership, const std::string& seen);

}  // namespace syncopate
