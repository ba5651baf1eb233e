#include "strategies/cluster/membership.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "strategies/cluster/membership_thread.h"
#include "strategies/cluster/rendezvous.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

// How long a leaving task waits until the other tasks have received its last message.
constexpr milliseconds kLastMessageTimeout(1000);
// Rank 0 knows the missing task. Other tasks wait this much longer to receive its verdict.
constexpr milliseconds kVerdictGrace(1000);
// The time within which rank 0's message that names the lost task (the verdict) follows a closed
// connection.
constexpr milliseconds kVerdictTimeout(1000);
constexpr std::size_t kMaxTextBytes = std::size_t{16} << 20U;

std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

// The membership of a job with one task: there are no other tasks to observe.
class SingleMembership final : public Membership {
 public:
  explicit SingleMembership(Roster roster) : roster_(std::move(roster)) {}

  int index() const noexcept override { return 0; }
  const std::vector<Member>& members() const noexcept override { return roster_.members; }
  const std::string& nonce() const noexcept override { return roster_.nonce; }
  milliseconds peer_timeout() const noexcept override { return roster_.peer_timeout; }
  std::vector<std::string> exchange(const std::string& mine) override { return {mine}; }
  std::optional<std::string> failure() const override { return std::nullopt; }
  void on_failure(std::function<void(const std::string&)>) override {}
  void report_step(std::int64_t) noexcept override {}
  std::int64_t lowest_step() const noexcept override { return -1; }
  void leave() override {}
  void fail(std::string_view) noexcept override {}

 private:
  Roster roster_;
};

class StarMembership final : public Membership {
 public:
  StarMembership(ConnectedTask task, milliseconds exchange_timeout)
      : index_(task.index),
        roster_(task.roster),
        timeout_(exchange_timeout + (index_ == 0 ? milliseconds(0) : kVerdictGrace)),
        aggregator_(static_cast<int>(roster_.members.size())),
        io_(std::move(task), {&aggregator_, &queue_, &notice_, &step_, &lowest_step_}),
        thread_([this](const std::stop_token& stop) {
          pthread_setname_np(pthread_self(), "membership");
          try {
            io_.run(stop);
          } catch (const std::exception& error) {
            notice_.set(
                fmt::format("rank {} no longer watches the others: {}", index_, error.what()));
            queue_.interrupt();
          }
        }) {}
  StarMembership(const StarMembership&) = delete;
  StarMembership& operator=(const StarMembership&) = delete;
  ~StarMembership() override {
    thread_.request_stop();
    queue_.wake();
  }

  int index() const noexcept override { return index_; }
  const std::vector<Member>& members() const noexcept override { return roster_.members; }
  const std::string& nonce() const noexcept override { return roster_.nonce; }
  milliseconds peer_timeout() const noexcept override { return roster_.peer_timeout; }

  std::vector<std::string> exchange(const std::string& mine) override {
    check(mine.size() <= kMaxTextBytes, "a text of exchange() is longer than 16 MiB");
    queue_.post({kText, mine});
    std::vector<std::string> texts =
        queue_.take_texts(roster_.members.size(), Deadline::after(timeout_));
    if (texts.size() == roster_.members.size()) return texts;
    throw_reason("sent its part of the set-up", aggregator_.without_text());
  }

  std::optional<std::string> failure() const override { return notice_.get(); }
  void on_failure(std::function<void(const std::string&)> callback) override {
    notice_.subscribe(callback);
  }
  void report_step(std::int64_t step) noexcept override {
    step_.store(step, std::memory_order_relaxed);
  }
  std::int64_t lowest_step() const noexcept override { return lowest_step_.load(); }

  void leave() override {
    queue_.post({kLeaving, ""});
    if (!queue_.wait_until_left(Deadline::after(timeout_))) {
      throw_reason("was done", aggregator_.not_leaving());
    }
    if (index_ == 0) queue_.wait_until_closed(Deadline::after(kLastMessageTimeout));
  }

  void fail(std::string_view reason) noexcept override {
    try {
      if (notice_.get()) return;
      queue_.post({kFailing, one_line(reason)});
      queue_.wait_until_closed(Deadline::after(kLastMessageTimeout));
    } catch (const std::exception&) {
      // No memory is left for the message about the failure. The other tasks detect the failure
      // because this task's connection closes.
    }
  }

 private:
  // Throws the reason why a wait for other tasks ended without success: because of a verdict, of
  // this task's own failure, or of the tasks in `missing`, which are late.
  [[noreturn]] void throw_reason(const std::string& awaited,
                                 const std::vector<int>& missing) const {
    if (const std::optional<std::string> verdict = failure()) throw PeerError(*verdict);
    if (queue_.is_interrupted()) throw PeerError("this task has failed and waits for no other");
    throw PeerError(fmt::format("not every task {} within {}; missing: {}", awaited,
                                in_seconds(timeout_),
                                index_ == 0 ? names(missing) : "rank 0's answer"));
  }

  // Returns the names of tasks as a list, "rank 2 (host b, pid 77), rank 3 (host c, pid 78)".
  std::string names(const std::vector<int>& indices) const {
    std::string text;
    for (const int index : indices) {
      const Member& member = roster_.members[static_cast<std::size_t>(index)];
      if (!text.empty()) text += ", ";
      text += describe(member.index, member.host, member.pid);
    }
    return text;
  }

  const int index_;
  const Roster roster_;
  const milliseconds timeout_;
  std::atomic<std::int64_t> step_{-1};
  std::atomic<std::int64_t> lowest_step_{-1};
  Aggregator aggregator_;  // collects the messages of all tasks; used on rank 0
  MembershipQueue queue_;
  FailureNotice notice_;
  MembershipThread io_;  // owns the connections; used by thread_
  std::jthread thread_;
};

ConnectedTask rendezvous(const Hello& hello, const ClusterSpec& spec,
                         const MembershipOptions& options) {
  const std::optional<Endpoint>& found = spec.rendezvous.endpoint;
  const bool inherits = spec.index == 0 && spec.rendezvous.descriptor >= 0;
  if (!found && !inherits) {
    throw UsageError(
        fmt::format("this task is rank {} of {}, but the address of rank 0 is missing; give "
                    "--rendezvous HOST:PORT",
                    spec.index, spec.world_size));
  }
  if (spec.index != 0) {
    return connect_to_rank_zero(hello, *found, options.rendezvous_timeout, options.listens_first);
  }
  Listener listener =
      inherits ? Listener(FileDescriptor(spec.rendezvous.descriptor)) : Listener(*found);
  const Endpoint endpoint{found ? found->host : "localhost", listener.port()};
  // Rank 0 compares the node and local rank that a task reports with the launcher's variables for
  // that rank.
  const auto is_misplaced = [&](const Hello& other) {
    return contradiction(spec, Role::kWorker, other.index, other.place);
  };
  return accept_tasks(hello, std::move(listener), endpoint, options.rendezvous_timeout,
                      is_misplaced);
}

}  // namespace

std::unique_ptr<Membership> join_cluster(const ClusterSpec& spec,
                                         const MembershipOptions& options) {
  const Hello hello = hello_of(spec, options);
  if (spec.world_size == 1) {
    return std::make_unique<SingleMembership>(make_roster({hello}, {"127.0.0.1"}));
  }
  return std::make_unique<StarMembership>(rendezvous(hello, spec, options),
                                          options.exchange_timeout);
}

std::string verdict_or(const Membership* membership, const std::string& seen) {
  if (membership == nullptr) return seen;
  for (const Deadline deadline = Deadline::after(kVerdictTimeout);;) {
    if (const std::optional<std::string> verdict = membership->failure()) return *verdict;
    if (deadline.passed()) return seen;
    std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace syncopate
