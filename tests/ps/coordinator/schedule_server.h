// A ScheduledServer is a server of a random job: it has one bucket, whose value is the list of
// applied pushes.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ps/coordinator/ledger.h"
#include "ps/wire/message.h"
#include "tests/ps/coordinator/schedule_rule.h"

namespace syncopate::ps {

// ServerEvent is the result of a push, for the coordinator (server 0), or an answer to a worker.
struct ServerEvent {
  enum class Kind : std::uint8_t { kApplied, kDropped, kAnswered };
  Kind kind = Kind::kApplied;
  TrainingPush push;  // for kAnswered, push.version is the version of the values in the answer
  std::uint64_t version = 0;  // for kApplied: of the values after the push
};

class ScheduledServer {
 public:
  // A snapshot of the server, in a file or in memory.
  struct Copy {
    std::vector<TrainingPush> applied;
    std::uint64_t version = 1;
    std::vector<WorkerClock> clocks;
    std::vector<std::byte> coordinator;  // only in files of server 0
  };

  ScheduledServer(int index, const ConsistencyOptions& consistency)
      : index_(index), consistency_(consistency), rule_(consistency) {}

  // Ends the server's process and begins a new one; the snapshot files stay.
  void restart();
  wire::HelloT make_hello() const;
  void on_message(const wire::MessageT& message);
  // The messages that this server has sent to server 0 and that have not arrived, oldest first.
  std::deque<wire::MessageT> replies;
  std::deque<wire::MessageT> orders;  // from server 0, in transit

  void join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);
  void push(const TrainingPush& push);
  std::vector<ServerEvent> take_ended_steps();
  // Returns whether the last bucket of the snapshot copied() is copied. finish_snapshot() then
  // writes the file and, on server 0, puts the coordinator's state into it.
  bool has_copied() const noexcept { return has_copied_; }
  std::uint64_t copied() const { return snapshot_->snapshot; }
  void finish_snapshot(std::vector<std::byte> coordinator);

  bool is_serving() const noexcept { return is_serving_; }
  bool is_finished() const noexcept { return is_finished_; }
  std::uint32_t incarnation() const noexcept { return incarnation_; }
  std::uint64_t version() const noexcept { return version_; }
  const std::vector<TrainingPush>& applied() const noexcept { return applied_; }
  const std::map<std::uint64_t, Copy>& copies() const noexcept { return copies_; }
  const std::map<std::uint64_t, Copy>& files() const noexcept { return files_; }
  // Returns the first violation of a consistency rule.
  const std::vector<std::string>& mistakes() const noexcept { return mistakes_; }

  bool is_alive = true;

 private:
  void work();
  bool rest();
  bool drop_late();
  bool apply_next();
  void answer();
  void roll_back(const wire::RollBackT& back);

  const int index_;
  const ConsistencyOptions consistency_;
  std::map<std::uint64_t, Copy> files_;

  std::uint32_t incarnation_ = 0;
  bool is_declared_ = false;
  bool is_serving_ = false;
  bool is_finished_ = false;
  ScheduledRule rule_;
  std::vector<TrainingPush> waiting_;
  std::vector<TrainingPush> unanswered_pushes_;  // pushes that are still to be answered
  std::map<WorkerId, std::uint64_t> resting_;    // maps resting workers to their last push
  std::vector<TrainingPush> applied_;
  std::uint64_t version_ = 1;
  std::optional<std::uint64_t> frozen_;  // the snapshot for which pushes are held
  std::optional<wire::SnapshotT> snapshot_;
  bool has_copied_ = false;
  std::map<std::uint64_t, Copy> copies_;
  std::vector<ServerEvent> events_;
  std::vector<std::string> mistakes_;
};

}  // namespace syncopate::ps
