// Makes snapshots of the variables, one at a time. Decides when a snapshot is due, sends Freeze and
// then Snapshot to the servers, and assigns a worker to evaluate the snapshot or to write a
// checkpoint from it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "ps/coordinator/job.h"
#include "ps/coordinator/job_snapshot.h"
#include "ps/coordinator/lease_queue.h"
#include "ps/shard/staleness.h"

namespace syncopate::ps {

// The part of the coordinator that makes snapshots. Used by one thread at a time.
class Snapshots {
 public:
  Snapshots(Job& job, LeaseQueue& leases) : job_(job), leases_(leases) {}

  // Makes a snapshot due, if servers write snapshots to files. Called when the snapshot interval
  // has passed.
  void request();
  // Checks whether an evaluation or a checkpoint is due. Called when `count` more batches are
  // trained.
  void on_batches_trained(std::int64_t count);

  void on_frozen(int server, const wire::FrozenT& frozen);
  void on_copied(int server, const wire::SnapshotDoneT& done);
  void on_assignment_done(int worker, const wire::AssignmentDoneT& done);
  // Assigns a snapshot that was assigned to this worker to another worker. Called when a worker is
  // lost.
  void on_worker_lost(int worker);
  // Returns whether the present snapshot is assigned to this worker, for an evaluation or a
  // checkpoint.
  bool is_assigned_to(int worker) const {
    return stage_ == Stage::kAssigning && is_assignment_sent_ && assigned_ == worker;
  }
  // Sends the assignment of a reconnected worker again, since the worker may not have received it.
  void resend_assignment(int worker);
  // Gives up the present snapshot; the evaluation or checkpoint for which it was made stays due.
  // Called when a server is lost.
  void abandon();
  // Drops the kept snapshots with numbers above `snapshot`; no snapshot is due any more. Called
  // when all servers roll back to `snapshot`.
  void roll_back_to(std::uint64_t snapshot);
  // Begins a snapshot if one is due, or continues the snapshot that is being made.
  void advance();

  // Returns whether the final snapshot has been evaluated and written.
  bool is_final_done() const noexcept { return is_final_done_; }

  // Returns whether the servers are copying their parts of this snapshot and shard 0 has not yet
  // reported the end of its copy.
  bool is_copying_shard_0(std::uint64_t snapshot) const {
    return is_of_current(Stage::kCopying, snapshot) && !answered_.contains(0);
  }
  // Returns the coordinator's state at the snapshot that is being copied.
  JobSnapshot save_job() const;
  // Returns the snapshots that a roll-back can choose from, by number.
  const std::map<std::uint64_t, JobSnapshot>& kept() const noexcept { return kept_; }
  void keep(JobSnapshot saved);

 private:
  enum class Stage : std::uint8_t { kNone, kFreezing, kCopying, kAssigning };
  struct Purpose {
    bool snapshot = false;
    bool evaluates = false;
    bool writes_checkpoint = false;
    bool any() const { return snapshot || evaluates || writes_checkpoint; }
  };
  struct Limit {
    std::uint32_t incarnation = 0;
    std::uint64_t sequence = 0;
    bool is_of_shard_0 = false;  // shard 0 had a session of the worker when it froze
  };

  bool may_begin() const;
  void begin();
  void send_copy_order();
  bool is_copied() const;
  void finish_copying();
  void send_assignment();
  void release();
  bool is_of_current(Stage stage, std::uint64_t snapshot) const {
    return stage_ == stage && job_.last_snapshot == snapshot;
  }
  bool all_answered() const { return static_cast<int>(answered_.size()) == job_.num_servers(); }
  std::map<WorkerId, std::uint64_t> sequences() const;

  Job& job_;
  LeaseQueue& leases_;
  Purpose due_;
  bool is_final_done_ = false;
  std::map<std::uint64_t, JobSnapshot> kept_;

  // The state of the snapshot being made; its number is job_.last_snapshot.
  Stage stage_ = Stage::kNone;
  Purpose purpose_;
  bool is_final_ = false;
  std::set<int> answered_;     // servers that have answered the message of the present stage
  bool is_unwritten_ = false;  // a server could not write its file
  std::map<WorkerId, Limit> limits_;
  std::map<WorkerId, StalenessHistogram> staleness_;
  JobProgress progress_;  // the job's progress at the snapshot
  std::optional<int> assigned_;
  bool is_assignment_sent_ = false;
};

}  // namespace syncopate::ps
