// The state that a client's I/O thread shares with the threads that call the client. Callers wait
// in ClientState; the I/O thread changes the state and notifies them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "models/base/errors.h"
#include "ps/client/client.h"
#include "ps/shard/stale_gradients.h"

namespace syncopate::ps {

// The type of the exception that reports a client's failure: PeerError, UsageError or JobOver.
enum class FailureKind : std::uint8_t { kPeer, kUsage, kJobOver };

struct ClientState {
  struct Bucket {
    bool awaited = false;  // a push or a pull has not been answered yet
    int waiting = 0;       // number of callers in wait_values()
    std::uint64_t version = 0;
    std::uint32_t shard_incarnation = 0;  // incarnation of the shard that counted `version`
  };

  // Members that the I/O thread reads without the mutex.
  std::atomic<std::int64_t> step{0};
  std::atomic<std::uint64_t> sequence{0};  // sequence of the last push

  std::mutex mutex;  // guards all members below
  std::condition_variable changed;

  std::optional<std::string> failure;
  FailureKind failure_kind = FailureKind::kPeer;

  // How far this worker has joined the job.
  std::optional<wire::WelcomeT> welcome;
  int shards_met = 0;
  std::optional<RunPosition> start;
  // Counts how often the shards went back to an earlier step.
  int roll_backs = 0;
  int roll_backs_known = 0;      // value of roll_backs at the last Client::resume() or wait_start()
  bool is_rolling_back = false;  // shard 0 has not sent Start since the last roll-back

  // The state of variables and requests.
  std::vector<Bucket> buckets;
  int requests_open = 0;  // number of unanswered requests of write_variables() and read_snapshot()
  std::optional<wire::StepSumsT> sums;
  std::vector<float> statistics;  // the answer of read_snapshot_state()
  Client::Traffic traffic;
  DropCounter drops;

  // The state of the job: batches, assignments and exchanges.
  std::deque<SampleRange> leases;
  std::vector<SampleRange>
      leased_batches;  // batches returned by next_lease(), until their push is answered
  bool leases_finished = false;
  bool all_granted = false;  // Leases::all_granted has come since the last call of next_lease()
  bool wants_lease = false;  // a request for a batch is not answered yet
  wire::JobStatusT status;
  std::deque<wire::AssignmentT> assignments;
  std::uint64_t assigned_snapshot = 0;  // snapshot of the last assignment
  bool is_assignment_done = false;
  // The `rules` passed to Client::complete_assignment(), in case the message AssignmentDone must be
  // sent again.
  std::vector<double> rules;
  bool finished = false;
  std::uint64_t round = 0;                       // number of the last Client::exchange()
  std::optional<wire::ExchangeT> open_exchange;  // not answered yet
  std::map<std::uint64_t, std::vector<std::string>> exchanged;  // answers by round

  // The functions of ClientState, except fail(), require the mutex.
  void throw_if_failed() const {
    if (!failure) return;
    if (failure_kind == FailureKind::kUsage) throw UsageError(*failure);
    if (failure_kind == FailureKind::kJobOver) throw JobOver(*failure);
    throw PeerError(*failure);
  }

  // Returns whether there is a batch, or the end of all batches.
  bool has_lease() const { return !leases.empty() || leases_finished; }
  // Returns the next batch; nullopt at the end of all batches.
  std::optional<SampleRange> take_lease() {
    if (leases.empty()) return std::nullopt;
    leased_batches.push_back(leases.front());
    leases.pop_front();
    return leased_batches.back();
  }

  // Returns whether the shards have rolled back since the last Client::resume() or wait_start().
  bool is_stale() const { return roll_backs != roll_backs_known; }

  // If is_stale(), waits until the step to continue from is known and throws RolledBack.
  void require_current(std::unique_lock<std::mutex>& lock) {
    if (!is_stale()) return;
    changed.wait(lock, [&] { return failure.has_value() || !is_rolling_back; });
    throw_if_failed();
    throw RolledBack(*start);
  }

  // Records the client's first failure and wakes all callers. Takes the mutex.
  void fail(const std::string& reason, FailureKind kind = FailureKind::kPeer) {
    {
      const std::lock_guard lock(mutex);
      if (failure) return;
      failure = reason;
      failure_kind = kind;
    }
    changed.notify_all();
  }

  // Waits until `done` returns true. Throws if the client has failed or the shards have rolled
  // back. The wait needs no deadline: the I/O thread notices a peer that is gone and calls fail().
  template <typename Done>
  void wait(std::unique_lock<std::mutex>& lock, const Done& done) {
    changed.wait(lock, [&] { return failure.has_value() || is_stale() || done(); });
    require_current(lock);
    if (!done()) throw_if_failed();
  }

  // Waits for the bucket's values. Counts this caller in `waiting`, because the I/O thread notifies
  // only for buckets with waiting callers.
  void wait_values(std::unique_lock<std::mutex>& lock, Bucket& bucket) {
    struct Count {
      explicit Count(int& of) : count(of) { ++count; }
      Count(const Count&) = delete;
      Count& operator=(const Count&) = delete;
      ~Count() { --count; }
      int& count;
    };
    const Count waiting(bucket.waiting);
    wait(lock, [&] { return !bucket.awaited; });
  }
};

}  // namespace syncopate::ps
