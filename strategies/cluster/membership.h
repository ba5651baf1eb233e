// The membership of a task in its job, from the rendezvous until the task leaves: the list of all
// tasks, heartbeats, and the verdict. The verdict is a text that says which task was lost or has
// failed. The topology is a star: every task has one connection to rank 0, and rank 0 forwards what
// all tasks must know. Gradients do not use these connections.
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

// A task as the other tasks know it. The replicas of the task are the ranks first_replica to
// first_replica + num_replicas - 1 of the collective.
struct Member {
  int index = 0;
  int first_replica = 0;
  int num_replicas = 1;
  std::string host;     // the machine's name as the task reports it
  std::string address;  // the address at which other tasks reach the task, as rank 0 sees it
  std::int64_t pid = 0;
  std::string process;  // process_name() of the task
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
  // The timeout of exchange() and leave(). It limits the wait for tasks that are alive, and may be
  // reading data from a slow disk or writing a checkpoint. The loss of a task ends the wait sooner.
  std::chrono::milliseconds exchange_timeout = std::chrono::seconds(600);
  // The longest time from the loss of a task to the end of all other tasks. 0 stands for 5 s if all
  // tasks are on one machine, and for 15 s otherwise.
  std::chrono::milliseconds peer_timeout{0};
  // How long a task waits for data before it sends its Hello. If data comes first, the other end is
  // not rank 0, which never sends first, but a parameter server. A parameter server would log the
  // Hello as a message of a foreign program.
  std::chrono::milliseconds listens_first{0};
};

// This task's membership. Thread-safe, but only the training thread may call exchange() and
// leave().
class Membership {
 public:
  // Closes the connections to the other tasks. If this task has not called leave(), the other tasks
  // treat the destruction as a failure of this task.
  virtual ~Membership() = default;

  virtual int index() const noexcept = 0;
  virtual const std::vector<Member>& members() const noexcept = 0;  // all tasks, by index
  virtual const std::string& nonce() const noexcept = 0;
  virtual std::chrono::milliseconds peer_timeout() const noexcept = 0;

  // Sends the text `mine` to all tasks and returns the texts of all tasks, by index. All tasks must
  // make the same sequence of exchange() calls. Used for small data during set-up, such as ports
  // and names. Throws PeerError.
  virtual std::vector<std::string> exchange(const std::string& mine) = 0;

  // Returns the verdict, which says which task was lost or has failed, on which host, and when its
  // last message came. Returns nullopt while all tasks are alive. A verdict does not change.
  virtual std::optional<std::string> failure() const = 0;
  // Sets the function that is called once with the verdict of failure(). The I/O thread calls the
  // function; if there is a verdict already, on_failure() itself calls it. The function must not
  // block. An empty function ends the subscription.
  virtual void on_failure(std::function<void(const std::string& reason)> callback) = 0;

  // Sets the step that heartbeats report. If this task is lost, the verdict (see failure()) has
  // this step.
  virtual void report_step(std::int64_t step) noexcept = 0;
  // Returns the lowest step of all tasks, as far as heartbeats have told; -1 if some task has not
  // reported a step. The number rises while the slowest task makes progress.
  virtual std::int64_t lowest_step() const noexcept = 0;

  // Leaves the job. Returns when every task has called leave(). Throws PeerError.
  virtual void leave() = 0;
  // Reports to the other tasks that this task ends because of `reason`, so that they end too.
  virtual void fail(std::string_view reason) noexcept = 0;
};

// Joins the other tasks of the job: rank 0 listens, and the other tasks connect to rank 0. Throws
// UsageError if agreements or world sizes differ, two tasks have the same rank, or a port is in
// use. Throws PeerError if a task does not connect in time, or another program answers. Every
// connected task throws the same text.
std::unique_ptr<Membership> join_cluster(const ClusterSpec& spec, const MembershipOptions& options);

// Returns the error message for a broken connection to another task. `seen` is the error of the
// socket. The verdict of the membership (Membership::failure()) explains more, and may come up to a
// second later. So the function waits for a verdict. It returns the verdict if one comes, and
// `seen` otherwise. `membership` may be null.
std::string verdict_or(const Membership* membership, const std::string& seen);

}  // namespace syncopate
