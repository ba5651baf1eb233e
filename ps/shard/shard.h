// Variables that several workers share: values, optimizer slots and versions of a set of buckets,
// with the consistency rule. The shard is a pure state machine without sockets, threads or clock.
// Threads of its caller do the work; the caller is a server, the replicas of one task, or a
// simulation.
//
//   worker:      read(values) ... computes ... push(gradient, memory for the next values)
//   any thread:  while (auto piece = claim(bucket)) update(*piece)
//   the owner:   take_events(events)
//
// One pass over a piece decodes the gradients, sums them, updates the values, and copies the new
// values out while they are in the cache. The size and the timing of pieces do not change the bits
// of the result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "models/optim/optimizer.h"
#include "models/tensor/parameter_arena.h"
#include "ps/shard/consistency.h"
#include "ps/shard/merge_log.h"
#include "ps/shard/shard_requests.h"
#include "ps/shard/staleness.h"
#include "ps/shard/staleness_counts.h"

namespace syncopate::ps {

class ShardMemory;

// A part of the work that is under way on a bucket. This work, the bucket's task (BucketTask in
// shared_bucket.h), is an update, copies of the values, or a copy for a snapshot.
struct Piece {
  BucketId bucket = 0;
  std::uint64_t task = 0;  // number of the task, counted per bucket
  Bucket range;            // elements of the arena; empty if the task only delivers events
};

// A set of buckets that several workers share. Thread-safe, except for functions that say
// otherwise. No call waits for the work of another thread: locks are held for bookkeeping only.
// Each bucket has a lock, and the list of events has one, which a thread takes while it holds the
// lock of a bucket. So the events of a bucket are in order, also across threads.
class Shard {
 public:
  // Makes a shard with the variables in `buckets`; bucket b of the shard is buckets[b]. The buckets
  // are ranges of the arena in any order; they must not overlap. `values`: [elements of all
  // buckets] f32 on the host, in the order of the arena; the shard reads and writes this memory.
  // Slots begin as zeros. `format` is the format of the values that workers receive; the values in
  // the shard and in snapshots are always exact f32. Throws ShapeError for buckets or values that
  // do not fit the layout. Throws UsageError for options that contradict each other.
  Shard(ArenaLayout layout, std::vector<Bucket> buckets, std::unique_ptr<Optimizer> optimizer,
        const ConsistencyOptions& consistency, Tensor values,
        ValuesFormat format = ValuesFormat::kF32);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }
  const Optimizer& optimizer() const noexcept;

  // Makes the worker active. `sequence` is the number of its last push; its clock starts level with
  // the clock of the slowest worker. An incarnation that left and joins again continues at the
  // sequence that the shard knows, or at `sequence` if the shard was restored since. If the worker
  // joins in the middle of a step, `ahead` has the buckets that have already received the worker's
  // next push, number `sequence` + 1. Waiting requests of an earlier incarnation of the worker are
  // dropped, and later requests of that incarnation are refused. Work on any bucket may become due;
  // claim() returns it.
  void join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
            std::span<const BucketId> ahead = {});
  // Makes the worker inactive, because it has finished or failed: other workers no longer wait for
  // it, and its further requests are refused. Its waiting pushes will still be applied; its waiting
  // reads are dropped. Returns the sequence of the worker's last push that any bucket has accepted.
  // Does nothing else for an unknown worker or an earlier incarnation.
  std::uint64_t leave(WorkerId worker, std::uint32_t incarnation);
  // Makes the worker rest, because it has nothing to push after `sequence` for now. Other workers
  // do not wait for the resting worker. The worker's next push ends the rest, and moves the
  // worker's clock up to the clock of the slowest other worker. Does nothing for an unknown worker
  // or an earlier incarnation.
  void rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);

  // Accepts a push. Returns false, and changes nothing, for an inactive worker or an old
  // incarnation. Otherwise events report what happens to the push (ShardEvent); the events of a
  // duplicate are kDropped, then kAnswered. Throws ShapeError for a gradient or memory of a wrong
  // length, and for bytes that are invalid for their codec. Throws InternalError for an unknown
  // bucket.
  bool push(const PushRequest& request);
  // Requests a bucket's values. They are copied once the consistency rule lets this worker read.
  // Returns false, and throws, in the same cases as push().
  bool read(const ReadRequest& request);
  // Under kQuorum: returns the first time at which an update is due although no other push comes;
  // nullopt if there is none after the latest time that the shard knows, and under other rules.
  std::optional<ShardTime> next_deadline() const;
  // Tells the shard the time. Work may become due on any bucket.
  void advance_to(ShardTime now);
  // Returns whether a push to one bucket, or the end of an update, may make work due on others.
  bool merges_pushes() const noexcept { return merges_ != nullptr; }
  // Returns a view of a bucket's values in the shard's own memory. The caller must make sure that
  // no thread writes the values: it is the only user of the shard, or it reads between the end of a
  // synchronous update and its own next push.
  struct Reading {
    std::span<const float> values;
    std::uint64_t version = 0;
  };
  Reading view(BucketId bucket) const;

  // Returns the next piece of the work that is due on the bucket, with at most `most_elements`
  // elements; nullopt if no work is due. The caller must pass every returned piece to update().
  std::optional<Piece> claim(BucketId bucket, std::int64_t most_elements = kPieceElements);
  // Does the work of a piece. Returns true for the last piece of a bucket's task (see Piece): then
  // the task's events are ready for take_events(), and the bucket's next task may be due. Throws
  // InternalError for a piece that is not under way.
  bool update(const Piece& piece);
  // Appends the events of all buckets' tasks (see Piece) that have ended since the last call. The
  // events of one bucket are in the order of their occurrence, whichever threads did the work. So a
  // caller that handles events in one thread, or under a lock, handles kApplied of a push before
  // its kAnswered.
  void take_events(std::vector<ShardEvent>& events);
  // Calls claim() and update() until the bucket has no work due, then take_events(). For callers
  // that do all work in one thread.
  void work(BucketId bucket, std::vector<ShardEvent>& events);

  // Stops new updates for a snapshot that is consistent over several shards. This is the first of
  // the snapshot's two steps; begin_snapshot() is the second. `number` is the snapshot's number,
  // from 1. After freeze(), pushes that have not begun wait. Returns the clocks of the workers that
  // have joined since restore(); if the buckets have different clocks of a worker, the highest. The
  // snapshot has no push of a worker that joins after freeze(), even if other shards have such
  // pushes. Server 0 relies on this when it counts the batches in its copy.
  std::vector<WorkerClock> freeze(std::uint64_t number);
  // Copies each bucket into `target` once the bucket has applied exactly the pushes up to `clocks`,
  // and then lets the bucket continue. If a worker has left, the bucket does not wait for pushes of
  // this worker that have not arrived yet. A kSnapshotCopied event reports each copied bucket.
  // `target` holds tensors of the shapes that snapshot() returns; the slots may be missing, and are
  // then not copied. The function fills in versions and clocks. `target` is shared because it may
  // still be written after the caller has released it. Does nothing unless the last freeze() had
  // this number and no thaw() followed. Throws ShapeError for tensors of other shapes.
  void begin_snapshot(std::uint64_t number, std::span<const WorkerClock> clocks,
                      std::shared_ptr<ShardSnapshot> target);
  // Withdraws the snapshot: pushes no longer wait, and no further bucket is copied. A copy that has
  // begun still ends with its kSnapshotCopied event.
  void thaw();

  // snapshot() and restore() require that no other thread uses the shard. snapshot() returns a copy
  // of the tensors, versions and clocks.
  // restore() replaces the tensors, versions and clocks. It drops waiting requests without an
  // event, and makes all workers inactive. The tensors of `snapshot` may be the shard's own. Throws
  // ShapeError for a snapshot that does not fit, and then has changed nothing.
  ShardSnapshot snapshot() const;
  void restore(const ShardSnapshot& snapshot);
  // Writes one bucket's initial values: one block of [bucket] f32 for the values, then one block
  // for every slot, or none to leave the slots unchanged. Blocks may have any alignment. Active
  // workers stay active. Returns false, and changes nothing, in these cases: version 0; after the
  // first push to the bucket; while a thread works on the bucket or copies it for a snapshot.
  // Throws ShapeError for other blocks. Throws InternalError for an unknown bucket.
  bool write(BucketId bucket, std::uint64_t version,
             std::span<const std::span<const std::byte>> values_and_slots);
  // The place of a bucket's elements in values(), slots() and snapshots.
  struct ElementRange {
    std::int64_t begin = 0;
    std::int64_t count = 0;
  };
  ElementRange element_range(BucketId bucket) const;
  // Return the shard's own tensors. values() and slots() require that no other thread uses the
  // shard, like snapshot().
  const Tensor& values() const noexcept;
  std::span<const Tensor> slots() const noexcept;

  // Returns the staleness of the applied pushes to all buckets, one histogram per worker. Pushes
  // that do not say which version they were computed from are left out.
  std::vector<StalenessHistogram> staleness() const;
  // Returns the staleness of all workers' pushes together, from running sums.
  StalenessTotals total_staleness() const;

  // The default size of a piece: large enough that the lock in claim() costs little, and small
  // enough to divide a small bucket among threads.
  static constexpr std::int64_t kPieceElements = 16384;

 private:
  struct Variable;

  void place_variables(const ConsistencyOptions& consistency);
  // Returns a bucket's state. Throws InternalError for a bucket that this shard does not have.
  Variable& at(BucketId bucket) const;
  // Under kSsp: returns the slowest clock of all active workers but this one.
  std::optional<std::int64_t> slowest_other(WorkerId worker) const;

  const std::vector<Bucket> buckets_;
  // join() and freeze() lock this mutex before the mutexes of the buckets. So at a freeze a joining
  // worker is known to all buckets or to none.
  std::mutex membership_;
  const std::unique_ptr<ShardMemory> memory_;
  const std::unique_ptr<StalenessCounts> staleness_;
  const std::unique_ptr<MergeLog> merges_;  // null unless kQuorum
  std::vector<std::unique_ptr<Variable>> variables_;
  std::mutex events_mutex_;         // taken after the mutex of a bucket
  std::vector<ShardEvent> events_;  // GUARDED_BY(events_mutex_)
};

}  // namespace syncopate::ps
