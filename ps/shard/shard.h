// Variables that several workers share: values, optimizer slots and versions of a set of buckets,
// and the consistency rule. A pure state machine without sockets, threads or clock: the caller's
// threads do the work, be they a server's, replicas of one task, or a simulation's event queue.
//
//   worker:  read(values) ... computes ... push(gradient, where the next values go)
//   anybody: while (auto piece = claim(bucket)) update(*piece, events)
//
// One pass over a piece decodes the gradients, sums them, updates the values and copies the new
// ones out: what is in the cache is used up there. Pieces cut and timed anyhow give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "models/optim/optimizer.h"
#include "models/tensor/parameter_arena.h"
#include "models/tensor/sums.h"
#include "ps/shard/consistency.h"
#include "ps/shard/shard_requests.h"
#include "ps/shard/shard_state.h"
#include "ps/shard/staleness.h"

namespace syncopate::ps {

struct BucketTask;

// A part of the work that is due on a bucket.
struct Piece {
  BucketId bucket = 0;
  std::uint64_t task = 0;  // which piece of work, counted per bucket
  Bucket range;            // of the arena; empty: there are only events to be handed out
};

// Thread-safe, but for what says otherwise. No call waits for another thread's work; locks are per
// bucket and held for bookkeeping only. Events of one bucket are handed out in the order in which
// they happened to whoever ended the work they come from.
class Shard {
 public:
  // Bucket b of this shard is buckets[b]: any part of the arena, in any order, none twice.
  // `values`: [elements of all buckets] f32 on the host, in the order of the arena; the shard reads
  // and writes this memory. Slots begin as zeros. Throws ShapeError; UsageError for options that
  // contradict each other.
  Shard(ArenaLayout layout, std::vector<Bucket> buckets, std::unique_ptr<Optimizer> optimizer,
        const ConsistencyOptions& consistency, Tensor values);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  const std::vector<Bucket>& buckets() const noexcept { return buckets_; }
  const Optimizer& optimizer() const noexcept { return *optimizer_; }

  // The worker takes part from now on, its clock at `sequence`, level with the slowest. What an
  // earlier incarnation has waiting is forgotten, and its later requests are refused; the same
  // incarnation goes on where it was, or at `sequence` if the shard went back meanwhile. On the
  // buckets that are `ahead`, in the middle of a step, at `sequence` + 1. What becomes due is found
  // by claim(), on any bucket.
  void join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
            std::span<const BucketId> ahead = {});
  // It has finished or died: nobody waits for it any more, and its requests are refused. What it
  // pushed stays, and is applied if it waits; what it asked to read is forgotten. A stranger or an
  // earlier incarnation: nothing happens.
  void leave(WorkerId worker, std::uint32_t incarnation);
  // It has nothing to push after `sequence` for now: nobody waits for it until its next push, when
  // it is no further behind than the slowest. A stranger or an earlier incarnation: nothing
  // happens.
  void rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);
  // From the next decision on. Throws UsageError for options that contradict each other.
  void set_consistency(const ConsistencyOptions& consistency);

  // Returns false to a stranger, to one that has left and to an earlier incarnation: nothing is
  // kept. Else events will follow, for a duplicate as well: kDropped, then kAnswered. Throws
  // ShapeError for a wrong length and for bytes that are not what their codec says; InternalError
  // for an unknown bucket.
  bool push(const PushRequest& request);
  // The values as soon as the rule lets this worker read. Returns and throws as push().
  bool read(const ReadRequest& request);
  // The values in place, for who knows that nobody writes: alone with the shard, or between the end
  // of a synchronous update and one's own next push.
  struct Reading {
    std::span<const float> values;
    std::uint64_t version = 0;
  };
  Reading view(BucketId bucket) const;

  // Takes the next part, of at most `most_elements`, of the work that is due on the bucket. Who
  // took a piece must hand it to update().
  std::optional<Piece> claim(BucketId bucket, std::int64_t most_elements = kPieceElements);
  // Does it. Appends what has happened when this was the last piece of its work; more may be due
  // then. Throws InternalError for a piece that is not under way.
  void update(const Piece& piece, std::vector<ShardEvent>& events);
  // claim() and update() until nothing is due: for one thread alone.
  void work(BucketId bucket, std::vector<ShardEvent>& events);

  // A cut, for a consistent copy over several shards, in two steps, both of the cut's number,
  // from 1. freeze(): pushes later than those begun wait; returns how far any bucket has got, by
  // worker.
  std::vector<CutEntry> freeze(std::uint64_t cut);
  // Each bucket is copied into `copy` when it has applied exactly the pushes up to `entries`
  // (workers that have left are not waited for, but for what of theirs waits), and goes on at once.
  // Events: kCutCopied. `copy` holds tensors as state() has them, or no slots: those are not copied
  // then; versions and clocks are filled in. It is shared by what copies, also once nobody waits
  // for it any more. Nothing happens unless the last freeze() was of this cut, and no thaw() came
  // since. Throws ShapeError.
  void cut(std::uint64_t cut, std::span<const CutEntry> entries, std::shared_ptr<ShardState> copy);
  // Pushes wait no longer, and what is not begun to be copied will not be. What is begun ends, with
  // its event.
  void thaw();

  // Alone with the shard. A copy; and values, slots, versions and clocks written from outside: what
  // waits is forgotten without an event, nobody has joined. The tensors may be the shard's own.
  // Throws ShapeError, and then has changed nothing.
  ShardState state() const;
  void restore(const ShardState& state);
  // One bucket's first values: [bucket] f32 in bytes of any alignment, then each slot's, or none of
  // them, which leaves the slots. Whoever has joined stays. False, and nothing is changed, for
  // version 0 and once the bucket has been pushed to. Throws ShapeError, InternalError as push().
  bool write(BucketId bucket, std::uint64_t version,
             std::span<const std::span<const std::byte>> values_and_slots);
  // Where the bucket stands in values(), slots() and copies of them.
  struct Window {
    std::int64_t begin = 0;
    std::int64_t count = 0;
  };
  Window window(BucketId bucket) const;
  const Tensor& values() const noexcept { return values_; }
  std::span<const Tensor> slots() const noexcept { return slots_; }

  // By worker, of all buckets: of the applied pushes whose version was ours.
  std::vector<StalenessHistogram> staleness() const;

  // Long enough to make a claim's lock cheap, short enough to share out a small bucket.
  static constexpr std::int64_t kPieceElements = 16384;

 private:
  struct Variable;

  void place_variables(const ConsistencyOptions& consistency);
  // Throws InternalError for a bucket that this shard has not.
  Variable& at(BucketId bucket) const;
  // One task's work on a stretch of the bucket that lies within a chunk of the sums.
  void work_on_chunk(const BucketTask& task, const Variable& variable, Bucket chunk);
  void update_chunk(const BucketTask& task, const Variable& variable, Bucket chunk);
  std::optional<std::int64_t> slowest_but(WorkerId worker) const;
  // Throws ShapeError unless the tensors are as ours; without slots where `may_lack_slots`.
  void check_tensors(const ShardState& state, bool may_lack_slots) const;

  const ArenaLayout layout_;
  const std::vector<Bucket> buckets_;
  const std::unique_ptr<Optimizer> optimizer_;
  const SumKernels& sums_;
  Tensor values_;
  std::vector<Tensor> slots_;
  std::vector<std::unique_ptr<Variable>> variables_;
};

}  // namespace syncopate::ps
