#include "strategies/cluster/membership.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "strategies/cluster/meeting.h"
#include "strategies/cluster/watcher.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// For the others to get our last message.
constexpr milliseconds kLastMessage(1000);
// Rank 0 knows whom we wait for, and is given the time to say so.
constexpr milliseconds kGrace(1000);
// Rank 0 sees a connection close when we do, and tells us at once.
constexpr milliseconds kVerdictTime(1000);
constexpr std::size_t kLongestText = std::size_t{16} << 20U;

std::string one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  return line;
}

// A world of one task: nobody to meet, nobody to lose.
class Alone final : public Membership {
 public:
  explicit Alone(Roster roster) : roster_(std::move(roster)) {}

  int index() const noexcept override { return 0; }
  const std::vector<Member>& members() const noexcept override { return roster_.members; }
  const std::string& nonce() const noexcept override { return roster_.nonce; }
  milliseconds peer_timeout() const noexcept override { return roster_.peer_timeout; }
  std::vector<std::string> exchange(const std::string& mine) override { return {mine}; }
  std::optional<std::string> failure() const override { return std::nullopt; }
  void on_failure(std::function<void(const std::string&)>) override {}
  void report_step(std::int64_t) noexcept override {}
  void leave() override {}
  void fail(std::string_view) noexcept override {}

 private:
  Roster roster_;
};

class StarMembership final : public Membership {
 public:
  StarMembership(Meeting meeting, milliseconds patience)
      : index_(meeting.index),
        roster_(meeting.roster),
        patience_(patience + (index_ == 0 ? milliseconds(0) : kGrace)),
        hub_(static_cast<int>(roster_.members.size())),
        watcher_(std::move(meeting), {&hub_, &mailbox_, &notice_, &step_}),
        thread_([this](const std::stop_token& stop) {
          pthread_setname_np(pthread_self(), "membership");
          try {
            watcher_.run(stop);
          } catch (const std::exception& error) {
            notice_.set("rank " + std::to_string(index_) +
                        " no longer watches the others: " + error.what());
            mailbox_.interrupt();
          }
        }) {}
  StarMembership(const StarMembership&) = delete;
  StarMembership& operator=(const StarMembership&) = delete;
  ~StarMembership() override {
    thread_.request_stop();
    mailbox_.wake();
  }

  int index() const noexcept override { return index_; }
  const std::vector<Member>& members() const noexcept override { return roster_.members; }
  const std::string& nonce() const noexcept override { return roster_.nonce; }
  milliseconds peer_timeout() const noexcept override { return roster_.peer_timeout; }

  std::vector<std::string> exchange(const std::string& mine) override {
    check(mine.size() <= kLongestText, "a text of exchange() is longer than 16 MiB");
    mailbox_.post({kText, mine});
    std::vector<std::string> texts =
        mailbox_.take_texts(roster_.members.size(), Deadline::after(patience_));
    if (texts.size() == roster_.members.size()) return texts;
    throw_reason("sent its part of the set-up", hub_.without_text());
  }

  std::optional<std::string> failure() const override { return notice_.get(); }
  void on_failure(std::function<void(const std::string&)> callback) override {
    notice_.subscribe(callback);
  }
  void report_step(std::int64_t step) noexcept override {
    step_.store(step, std::memory_order_relaxed);
  }

  void leave() override {
    mailbox_.post({kLeaving, ""});
    if (!mailbox_.wait_until_left(Deadline::after(patience_))) {
      throw_reason("was done", hub_.not_leaving());
    }
    if (index_ == 0) mailbox_.wait_until_closed(Deadline::after(kLastMessage));
  }

  void fail(std::string_view reason) noexcept override {
    try {
      if (notice_.get()) return;
      mailbox_.post({kFailing, one_line(reason)});
      mailbox_.wait_until_closed(Deadline::after(kLastMessage));
    } catch (const std::exception&) {
      // No memory is left. The others see the connection close.
    }
  }

 private:
  // Why something was not there in time: a verdict, our own end, or else somebody's delay.
  [[noreturn]] void throw_reason(const std::string& awaited,
                                 const std::vector<int>& missing) const {
    if (const std::optional<std::string> verdict = failure()) throw PeerError(*verdict);
    if (mailbox_.is_interrupted()) throw PeerError("this task has failed and waits for no other");
    throw PeerError("not every task " + awaited + " within " + in_seconds(patience_) +
                    "; missing: " + (index_ == 0 ? names(missing) : "rank 0's answer"));
  }

  // "rank 2 (host b, pid 77), rank 3 (host c, pid 78)"
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
  const milliseconds patience_;
  std::atomic<std::int64_t> step_{-1};
  Hub hub_;  // rank 0's
  Mailbox mailbox_;
  FailureNotice notice_;
  Watcher watcher_;  // the thread's
  std::jthread thread_;
};

Meeting meet(const Hello& hello, const ClusterSpec& spec, const MembershipOptions& options) {
  const bool inherits = spec.index == 0 && spec.rendezvous.descriptor >= 0;
  if (!spec.rendezvous.endpoint && !inherits) {
    throw UsageError("this task is rank " + std::to_string(spec.index) + " of " +
                     std::to_string(spec.world_size) +
                     ", but nothing says where rank 0 listens; give --rendezvous HOST:PORT");
  }
  if (spec.index != 0)
    return call_rank_zero(hello, *spec.rendezvous.endpoint, options.rendezvous_timeout);
  Listener listener = inherits ? Listener(FileDescriptor(spec.rendezvous.descriptor))
                               : Listener(*spec.rendezvous.endpoint);
  const Endpoint endpoint{spec.rendezvous.endpoint ? spec.rendezvous.endpoint->host : "localhost",
                          listener.port()};
  // Ranks were placed by what rank 0 was told; each says where it runs.
  const auto misplaced = [&](const Hello& caller) {
    return contradiction(spec, Role::kWorker, caller.index, caller.place);
  };
  return wait_for_callers(hello, std::move(listener), endpoint, options.rendezvous_timeout,
                          misplaced);
}

}  // namespace

std::unique_ptr<Membership> join_cluster(const ClusterSpec& spec,
                                         const MembershipOptions& options) {
  const Hello hello = hello_of(spec, options);
  if (spec.world_size == 1) return std::make_unique<Alone>(make_roster({hello}, {"127.0.0.1"}));
  return std::make_unique<StarMembership>(meet(hello, spec, options), options.patience);
}

std::string verdict_or(const Membership* membership, const std::string& seen) {
  if (membership == nullptr) return seen;
  for (const Deadline deadline = Deadline::after(kVerdictTime);;) {
    if (const std::optional<std::string> verdict = membership->failure()) return *verdict;
    if (deadline.passed()) return seen;
    std::this_thread::sleep_for(milliseconds(10));
  }
}

}  // namespace syncopate
