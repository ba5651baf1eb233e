// What a client's I/O thread and its callers share: who waits here is told when something changed.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ps/client/client.h"

namespace syncopate::ps {

// Which error it becomes: PeerError, UsageError, JobOver.
enum class FailureKind : std::uint8_t { kPeer, kUsage, kJobOver };

struct ClientBoard {
  struct Bucket {
    bool awaited = false;  // a push or a pull has no answer yet
    int waiting = 0;       // callers who are told when it has one
    std::uint64_t version = 0;
    std::uint32_t shard_incarnation = 0;  // that counts so
  };

  std::mutex mutex;  // guards everything below
  std::condition_variable changed;

  std::optional<std::string> failure;
  FailureKind failure_kind = FailureKind::kPeer;

  // Meeting.
  std::optional<wire::WelcomeT> welcome;
  int shards_met = 0;
  std::optional<RunPosition> start;
  // How often the shards went back to an earlier step, and whether the last time is not over yet.
  int roll_backs = 0;
  bool is_rewinding = false;
  int roll_backs_known = 0;  // to the callers: Client::go_on()

  // Variables.
  std::vector<Bucket> buckets;
  int requests_open = 0;  // of write_variables() and read_cut()
  std::optional<wire::StepSumsT> sums;
  std::vector<float> state;  // of read_cut_state()
  Client::Traffic traffic;

  // The job.
  std::deque<SampleRange> leases;
  std::vector<SampleRange> in_hand;  // taken from there, and their steps have no answer yet
  bool leases_finished = false;
  bool wants_lease = false;  // somebody waits for one
  wire::JobStatusT status;
  std::deque<wire::AppointmentT> appointments;
  std::uint64_t appointed_cut = 0;  // of the last one, and whether it has been dealt with
  bool is_appointment_done = false;
  bool finished = false;
  std::uint64_t round = 0;                                      // of the last Client::exchange()
  std::map<std::uint64_t, std::vector<std::string>> exchanged;  // by round

  // With the mutex held.
  void throw_if_failed() const;
  bool is_void() const { return roll_backs != roll_backs_known; }
  // Throws RolledBack if the callers do not know of the last time, once it is known where training
  // goes on.
  void require_current(std::unique_lock<std::mutex>& lock);
  // Without it: what went wrong first is what counts.
  void fail(const std::string& reason, FailureKind kind = FailureKind::kPeer);

  // Returns when `done` says so; throws when something has failed, or what was waited for belongs
  // to the past. With the mutex held.
  template <typename Done>
  void wait(std::unique_lock<std::mutex>& lock, const Done& done) {
    // No deadline of its own: whoever is gone is noticed by the I/O thread, which fails the board.
    changed.wait(lock, [&] { return failure.has_value() || is_void() || done(); });
    require_current(lock);
    if (!done()) throw_if_failed();
  }
  // Returns when the bucket is not awaited, else as above. Each answer would else wake whoever
  // waits for another one.
  void wait_values(std::unique_lock<std::mutex>& lock, Bucket& bucket);
};

}  // namespace syncopate::ps
