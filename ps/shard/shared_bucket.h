// The state of one bucket of a shard, without its values: the version, the waiting requests, the
// consistency rule, and the task that is under way. A task is an update, copies of the values, or a
// copy for a snapshot. There is at most one task at a time; every call begins the next task if none
// is under way. ps/shard/shard.h locks the bucket; ps/shard/shard_memory.h does the work of its
// tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/optim/optimizer.h"
#include "ps/shard/consistency_rule.h"
#include "ps/shard/merge_log.h"
#include "ps/shard/shard_requests.h"
#include "ps/shard/staleness.h"
#include "ps/shard/staleness_counts.h"
#include "ps/shard/waiting_reads.h"

namespace syncopate::ps {

// A snapshot that is being taken. The snapshot's owner shares the target, because a thread may
// still write to the target after the snapshot was withdrawn.
struct SnapshotOrder {
  std::uint64_t number = 0;
  std::shared_ptr<ShardSnapshot> target;
};

// The task of a bucket, which is the work that is under way on the bucket: an update, copies of the
// values for requests, or the bucket's part of a snapshot. A thread that works on a part of the
// task reads the task without a lock: until the last part is done, only the members that the
// bucket's lock guards change.
struct BucketTask {
  enum class Kind : std::uint8_t {
    kNone,
    kUpdate,    // applies pushes, and copies the new values to `destinations`
    kCopy,      // copies the values to `destinations`
    kSnapshot,  // copies values and slots to `snapshot`
    kDeliver,   // only delivers events; the task has one part, without elements
  };
  Kind kind = Kind::kNone;
  std::uint64_t id = 0;  // number of the task, counted per bucket
  // The next three members are guarded by the bucket's lock.
  std::int64_t claimed = 0;
  std::int64_t done = 0;
  bool is_taken = false;  // a thread has claimed a part

  // These members are used by kUpdate. `pushes`, `gradients` and `weights` are sorted by worker.
  std::vector<PushRequest> pushes;
  std::vector<EncodedGradient> gradients;
  std::vector<float> weights;  // factors of the gradients in their sum; empty: 1
  UpdateStep step;
  DelayCompensation compensation;
  struct Unanswered {
    PushId id;
    std::uint64_t token = 0;
  };
  std::vector<Unanswered> unanswered;  // pushes of workers that have left, if they asked for values

  std::vector<Destination> destinations;
  SnapshotOrder snapshot;
};

// The state of one bucket. Used by one thread at a time, except that threads which work on a part
// of the task may read task() at any time.
class SharedBucket {
 public:
  // The bucket adds the staleness of every applied push to `staleness`. `merges` is required under
  // kQuorum: bucket 0 writes its merges, and the others read them. Both must outlive the bucket.
  SharedBucket(BucketId bucket, std::int64_t elements, ConsistencyRule rule,
               StalenessCounts& staleness, MergeLog* merges = nullptr);

  std::uint64_t version() const noexcept { return version_; }
  const BucketTask& task() const noexcept { return task_; }

  // Each of these functions does for this bucket what the function of the same name does in Shard
  // or in ConsistencyRule. Shard has already checked the lengths.
  void join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
            std::int64_t offset);
  ConsistencyRule::Standing standing(WorkerId worker, std::uint32_t incarnation,
                                     std::uint64_t sequence) const noexcept {
    return rule_.standing(worker, incarnation, sequence);
  }
  // Waiting pushes after `last_kept` are cancelled; earlier ones are still applied.
  void leave(WorkerId worker, std::uint32_t incarnation, std::uint64_t last_kept);
  std::uint64_t accepted(WorkerId worker) const noexcept { return rule_.accepted(worker); }
  void rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);
  bool ends_rest(const PushId& id) const noexcept { return rule_.ends_rest(id); }
  void wake(WorkerId worker, std::optional<std::int64_t> slowest) { rule_.wake(worker, slowest); }
  bool push(const PushRequest& request);
  bool read(const ReadRequest& request);
  std::optional<ShardTime> next_deadline() const;
  void advance_to(ShardTime now);

  // A part of the task under way (number task().id): elements [begin, end) of the bucket.
  struct Part {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::optional<Part> claim(std::int64_t most_elements);
  // Returns whether the task with the number `task` is under way and this part of the task has been
  // claimed.
  bool is_under_way(std::uint64_t task, Part part) const noexcept;
  // Records that a part is done. After the task's last part, also appends the task's events to
  // `events` and begins the next task.
  void finish(Part part, std::vector<ShardEvent>& events);

  // Holds the bucket for the snapshot with this number: no push to the bucket begins any more. A
  // snapshot calls hold(), limit() and begin_snapshot(), in this order; thaw() withdraws the
  // snapshot.
  void hold(std::uint64_t number);
  std::vector<WorkerClock> clocks() const { return rule_.clocks(); }
  std::vector<WorkerClock> joined_clocks() const { return rule_.joined_clocks(); }
  // Lets pushes up to these clocks begin, and no others.
  void limit(std::span<const WorkerClock> clocks);
  // Orders a copy of the bucket, which is made once all pushes up to `clocks` have been applied.
  // Does nothing unless the bucket is held for this snapshot.
  void begin_snapshot(std::span<const WorkerClock> clocks, const SnapshotOrder& order);
  void thaw();

  // Returns whether a thread has claimed a part of the task under way.
  bool is_at_work() const noexcept {
    return task_.kind != BucketTask::Kind::kNone && task_.is_taken;
  }
  // Replaces version and clocks. Precondition: no thread works on a part of the task.
  void restore(const ShardSnapshot::Variable& snapshot);
  // Sets the version of the values that the caller writes next. Returns false, and changes nothing,
  // in these cases: version 0; after the first push; while a thread works on the task under way;
  // while the bucket is being copied for a snapshot.
  bool set_version(std::uint64_t version);

 private:
  // A copy of the values that a worker computes with, for delay compensation.
  struct ReadCopy {
    std::uint32_t incarnation = 0;
    std::uint64_t version = 0;  // 0 while `values` is not valid
    std::vector<float> values;
  };

  void add_event(ShardEvent::Kind kind, const PushId& id, std::uint64_t token);
  // Queues a read of values for a push that asks for them.
  void answer_later(const PushRequest& push);
  // Drops the waiting pushes that satisfy `is_void`.
  void cancel_pushes(const std::function<bool(const PushId&)>& is_void);
  // Drops the waiting reads that satisfy `is_void`.
  void cancel_reads(const std::function<bool(const Destination&)>& is_void);
  // Moves the worker's clock to this push.
  void advance(const PushId& id);

  // Begins the bucket's next task unless one is under way.
  void begin_next();
  void begin(BucketTask::Kind kind);
  bool follows_merges() const noexcept { return merges_ != nullptr && bucket_ > 0; }
  // Chooses the pushes of the next update.
  void choose();
  // Chooses the waiting pushes of the next merge, when all of them have arrived. Workers that
  // have left push nothing more. Returns false if the merge is over without any push.
  bool choose_merged();
  void drop_late_pushes();
  bool begin_snapshot_copy();
  bool begin_copies();
  bool begin_update();
  // Sets the learning rate and the staleness compensation of the update under way for `push`, the
  // only push that the update applies.
  void compensate_staleness(const PushRequest& push);
  // Sets the weights of the update under way.
  void weigh();
  // Moves the reads that may be answered now into the task under way.
  void take_reads();
  void end_update();
  void answer();

  bool compensates() const noexcept;
  bool is_known_version(std::uint64_t version) const noexcept {
    return version > 0 && version <= version_;
  }
  std::uint64_t staleness_of(const PushRequest& push) const noexcept;  // 0: unknown version

  const BucketId bucket_;
  const std::int64_t elements_;
  ConsistencyRule rule_;
  std::uint64_t version_ = 1;
  ShardTime now_{0};                   // the latest time that the bucket knows
  std::vector<PushRequest> waiting_;   // pushes in order of arrival
  bool may_have_late_pushes_ = false;  // false if no push in waiting_ must be dropped
  WaitingReads reads_;
  std::vector<ShardEvent> events_;  // events not delivered yet
  BucketTask task_;
  // Number of the snapshot that holds the bucket; 0 if the bucket is not held.
  std::uint64_t held_for_ = 0;
  SnapshotOrder snapshot_;  // the snapshot to copy the bucket for; no target if there is none
  StalenessCounts& staleness_;
  MergeLog* const merges_;
  std::uint64_t next_merge_ = 0;  // the number of the next merge that the bucket follows
  std::map<WorkerId, ReadCopy> read_copies_;
  std::vector<float> mean_square_;
  bool was_pushed_to_ = false;
  std::vector<std::size_t> chosen_;  // scratch memory of begin_update()
};

}  // namespace syncopate::ps
