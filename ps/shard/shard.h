// Variables that several workers share: values, optimizer slots and versions of a set of buckets,
// with the consistency rule. A pure state machine without sockets, threads or clock: the work is
// done by threads of the caller, such as a server, the replicas of one task, or a simulation.
//
//   worker:      read(values) ... computes ... push(gradient, memory for the next values)
//   any thread:  while (auto piece = claim(bucket)) update(*piece)
//   the owner:   take_events(events)
//
// One pass over a piece decodes the gradients, sums them, updates the values and copies the new
// values out, while they are in the cache. The result does not depend on the size or the timing of
// pieces: the bits are always equal.
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
#include "ps/shard/shard_requests.h"
#include "ps/shard/staleness.h"
#include "ps/shard/staleness_counts.h"

namespace syncopate::ps {

class ShardMemory;

// A piece of work: a part of the task that is under way on a bucket.
struct Piece {
  BucketId bucket = 0;
  std::uint64_t task = 0;  // number of the task, counted per bucket
  Bucket range;            // of the arena; empty: the task only delivers events
};

// Thread-safe, except for functions that say otherwise. No call waits for the work of another
// thread; locks are per bucket and held for bookkeeping only.
class Shard {
 public:
  // Bucket b of the shard is buckets[b]: any range of the arena, in any order, without overlaps.
  // `values`: [elements of all buckets] f32 on the host, in the order of the arena; the shard reads
  // and writes this memory. Slots begin as zeros. `format`: of the values that workers receive; the
  // shard's own, and snapshots, are always exact. Throws ShapeError; UsageError for options that
  // contradict each other.
  Shard(ArenaLayout layout, std::vector<Bucket> buckets, std::unique_ptr<Optimizer> optimizer,
        const ConsistencyOptions& consistency, Tensor values,
        ValuesFormat format = ValuesFormat::kF32);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }
  const Optimizer& optimizer() const noexcept;

  // Makes the worker active; its clock starts at `sequence`, level with the slowest worker. Waiting
  // requests of an earlier incarnation are dropped, and its later requests refused. An incarnation
  // that left continues at its own sequence, or at `sequence` if the shard was restored since. For
  // the buckets in `ahead` the worker is in the middle of a step: `sequence` + 1. Work on any
  // bucket may become due; claim() returns it.
  void join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
            std::span<const BucketId> ahead = {});
  // Called when the worker has finished or failed: no worker waits for it any more, and its
  // requests are refused. Its waiting pushes will be applied; its waiting reads are dropped. Does
  // nothing for an unknown worker or an earlier incarnation. Returns the sequence of the last push
  // of the worker that any bucket has accepted.
  std::uint64_t leave(WorkerId worker, std::uint32_t incarnation);
  // Called when the worker has nothing to push after `sequence` for now: no worker waits for it
  // until its next push, when its clock moves up to the slowest one. Does nothing for an unknown
  // worker or an earlier incarnation.
  void rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);

  // Accepts a push. Returns false, and keeps nothing, for an inactive worker or an old incarnation.
  // Otherwise events follow; for a duplicate kDropped, then kAnswered. Throws ShapeError for a
  // wrong length or bytes invalid for their codec; InternalError for an unknown bucket.
  bool push(const PushRequest& request);
  // Requests the values, when the rule lets this worker read. Returns and throws as push() does.
  bool read(const ReadRequest& request);
  // The shard's values in place. The caller must know that no thread writes them: it is alone with
  // the shard, or it runs between the end of a synchronous update and its own next push.
  struct Reading {
    std::span<const float> values;
    std::uint64_t version = 0;
  };
  Reading view(BucketId bucket) const;

  // Takes the next piece of the work that is due on the bucket, of at most `most_elements`; nothing
  // if no work is due. The caller must pass every taken piece to update().
  std::optional<Piece> claim(BucketId bucket, std::int64_t most_elements = kPieceElements);
  // Does the work of a piece. Returns whether it was the last one of a task, so that the next task
  // may be due, and the task's events are there for take_events(). Throws InternalError for a piece
  // that is not under way.
  bool update(const Piece& piece);
  // Appends the events of all tasks that have ended since the last call. The events of one bucket
  // are in the order of their occurrence, whichever threads did the work. So a caller that handles
  // them under a lock, or in one thread, sees a push applied before it is answered.
  void take_events(std::vector<ShardEvent>& events);
  // Calls claim() and update() until the bucket has no work due, then take_events(); for a single
  // thread.
  void work(BucketId bucket, std::vector<ShardEvent>& events);

  // A snapshot is consistent over several shards. It is taken in two steps, freeze() and
  // begin_snapshot(), under one number from 1. freeze(): pushes that have not begun wait. Returns
  // the furthest clock of any bucket, by worker, of the workers that have joined since restore().
  // The snapshot has no push of a worker that joins later, whatever other shards have: server 0
  // counts the batches in its copy by this.
  std::vector<WorkerClock> freeze(std::uint64_t number);
  // Copies each bucket into `target` once the bucket has applied exactly the pushes up to `clocks`,
  // and then lets it continue. Only waiting pushes of workers that have left are waited for. Event:
  // kSnapshotCopied. `target` holds tensors as snapshot() returns them, or no slots: slots are not
  // copied then. Versions and clocks are filled in. `target` is shared because it may still be
  // written after the caller has given it up. Does nothing unless the last freeze() had this number
  // and no thaw() followed. Throws ShapeError.
  void begin_snapshot(std::uint64_t number, std::span<const WorkerClock> clocks,
                      std::shared_ptr<ShardSnapshot> target);
  // Withdraws the snapshot: pushes wait no longer, and no further bucket is copied. A copy that has
  // begun still ends with its event.
  void thaw();

  // The functions below require that no other thread uses the shard, except element_range() and
  // write(). snapshot() copies tensors, versions and clocks. restore() replaces them: waiting
  // requests are dropped without an event and no worker is active. The tensors may be the shard's
  // own. Throws ShapeError, and then has changed nothing.
  ShardSnapshot snapshot() const;
  void restore(const ShardSnapshot& snapshot);
  // Writes one bucket's initial values: [bucket] f32 in bytes of any alignment, then either every
  // slot or none, which leaves the slots unchanged. Active workers stay active. Returns false, and
  // changes nothing, for version 0, after the first push to the bucket, and while a thread works on
  // the bucket or a snapshot of it is being copied. Throws ShapeError; InternalError for an unknown
  // bucket.
  bool write(BucketId bucket, std::uint64_t version,
             std::span<const std::span<const std::byte>> values_and_slots);
  // The place of a bucket's elements in values(), slots() and snapshots.
  struct ElementRange {
    std::int64_t begin = 0;
    std::int64_t count = 0;
  };
  ElementRange element_range(BucketId bucket) const;
  const Tensor& values() const noexcept;
  std::span<const Tensor> slots() const noexcept;

  // Returns the staleness of the applied pushes of all buckets, by worker. Pushes of an unknown
  // version are left out.
  std::vector<StalenessHistogram> staleness() const;
  // Returns the staleness of all workers' pushes together, from running sums.
  StalenessTotals total_staleness() const;

  // A piece is large enough to make claim()'s lock cheap, small enough to divide a small bucket.
  static constexpr std::int64_t kPieceElements = 16384;

 private:
  struct Variable;

  void place_variables(const ConsistencyOptions& consistency);
  // Returns a bucket's state. Throws InternalError for a bucket that this shard does not have.
  Variable& at(BucketId bucket) const;
  // Under kSsp: returns the slowest clock of all active workers but this one.
  std::optional<std::int64_t> slowest_other(WorkerId worker) const;

  const std::vector<Bucket> buckets_;
  // Held by join() and freeze(), before the mutexes of the buckets: a worker that joins is known to
  // all buckets at a freeze, or to none.
  std::mutex membership_;
  const std::unique_ptr<ShardMemory> memory_;
  const std::unique_ptr<StalenessCounts> staleness_;
  std::vector<std::unique_ptr<Variable>> variables_;
  std::mutex events_mutex_;         // taken after the mutex of a bucket
  std::vector<ShardEvent> events_;  // GUARDED_BY(events_mutex_)
};

}  // namespace syncopate::ps
