// The tasks of one job from their rendezvous until they leave: roster, heartbeats, and the verdict
// when a task is lost. The topology is a star: every task keeps one connection to rank 0, which
// passes on what all tasks must know. Gradients do not use these connections.
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

// A task as the other tasks know it. Its replicas are ranks first_replica .. first_replica +
// num_replicas - 1 of the collective.
struct Member {
  int index = 0;
  int first_replica = 0;
  int num_replicas = 1;
  std::string host;     // the machine's name as the task reports it
  std::string address;  // where the other tasks reach it: the address that rank 0 sees
  std::int64_t pid = 0;
  std::string process;  // its process_name()
};

// A setting that is compared at the rendezvous. A difference ends the job if `must` is set, and is
// logged as a warning otherwise.
struct Agreement {
  std::string name;   // name of the setting, such as "--seed"
  std::string value;  // value of the setting, such as "1"
  bool must = true;
};

struct MembershipOptions {
  int num_replicas = 1;  // number of this task's replicas
  std::vector<Agreement> agreements;
  std::chrono::milliseconds rendezvous_timeout = std::chrono::seconds(120);
  // The timeout of exchange() and leave(). It bounds the wait for tasks that are alive, which may
  // be reading data from a cold disk or writing a checkpoint. A lost task ends the wait sooner.
  std::chrono::milliseconds exchange_timeout = std::chrono::seconds(600);
  // The longest time from the loss of a task to the end of all other tasks. 0: 5 s when all tasks
  // are on one machine, else 15 s.
  std::chrono::milliseconds peer_timeout{0};
  // How long a task listens before it sends its hello. Rank 0 never sends first; a parameter server
  // does, and would log the hello as one of another program.
  std::chrono::milliseconds listens_first{0};
};

// This task's membership. Thread-safe, but exchange() and leave() belong to the training thread.
class Membership {
 public:
  // Destroying the membership without leave() counts as a failure of this task for the others.
  virtual ~Membership() = default;

  virtual int index() const noexcept = 0;
  virtual const std::vector<Member>& members() const noexcept = 0;  // all tasks, by index
  virtual const std::string& nonce() const noexcept = 0;
  virtual std::chrono::milliseconds peer_timeout() const noexcept = 0;

  // Returns the texts of all tasks, by index. Every task calls exchange() in the same order. For
  // small data during set-up, such as ports and names. Throws PeerError.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;

  // Returns the verdict: which task was lost or failed, where, and when its last message came.
  // Nothing while all tasks are alive. A verdict does not change.
  virtual std::optional<std::string> failure() const = 0;
  // Sets the function that is called with the verdict, once: from the I/O thread, or at once when
  // there is a verdict already. It must not block. An empty function ends the subscription.
  virtual void on_failure(std::function<void(const std::string& reason)> callback) = 0;

  // Sets the step that the heartbeats carry, which the verdict names if this task is lost.
  virtual void report_step(std::int64_t step) noexcept = 0;

  // Leaves the job: returns when every task has called leave(). Throws PeerError.
  virtual void leave() = 0;
  // Tells the other tasks that this task ends because of `reason`, so that they end too.
  virtual void fail(std::string_view reason) noexcept = 0;
};

// Joins the other tasks: rank 0 listens, the others connect to it. Throws UsageError (agreements
// differ, two tasks have one rank, another world size, a port in use) and PeerError (a task did not
// come in time, or another program answered). Every connected task throws the same text.
std::unique_ptr<Membership> join_cluster(const ClusterSpec& spec, const MembershipOptions& options);

// Explains a broken connection to another task: returns the verdict, which may come up to a second
// later than the error of the socket, else `seen`, the socket's error. `membership` may be null.
std::string verdict_or(const Membership* membership, const std::string& seen);

}  // namespace syncopate
