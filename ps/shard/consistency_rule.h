// The consistency rule of one bucket: synchronous, asynchronous or SSP (bounded staleness). It
// chooses which waiting pushes make up the next update, and decides when a worker may read. The
// rule keeps the workers' clocks; the owner of the rule (ps/shard/shared_bucket.h) locks, sums and
// updates. A push is counted in its worker's clock when the update with this push begins. Reads
// that begin later see the push.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ps/shard/consistency.h"
#include "ps/shard/shard_requests.h"

namespace syncopate::ps {

// The consistency rule and the workers' clocks of one bucket. Used by one thread at a time. Calls
// for unknown workers or earlier incarnations change nothing. A worker is awaited if it is active
// and does not rest: updates (kSync) and readers (kSsp) wait for the pushes of awaited workers.
class ConsistencyRule {
 public:
  // Makes the rule of a bucket, without workers. Throws UsageError for options that contradict each
  // other or are out of range.
  explicit ConsistencyRule(const ConsistencyOptions& options);

  const ConsistencyOptions& options() const noexcept { return options_; }

  // Makes the worker active. For a new worker or a new incarnation, `sequence` becomes the number
  // of its last push. An incarnation that left and joins again keeps the sequence that the rule
  // knows. The worker's clock is the sequence of its last push plus `offset`. Does nothing for an
  // incarnation that is active already.
  void join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
            std::int64_t offset);
  // The numbers that determine the clock offset of a joining worker.
  struct Standing {
    // The slowest clock of the other awaited workers. Set only under kSsp, and only if there are
    // other awaited workers.
    std::optional<std::int64_t> slowest;
    std::uint64_t sequence = 0;  // of the worker's own last push that is counted in its clock
  };
  Standing standing(WorkerId worker, std::uint32_t incarnation,
                    std::uint64_t sequence) const noexcept;
  // Makes the worker inactive: no update and no worker waits for it.
  void leave(WorkerId worker, std::uint32_t incarnation);
  // Makes the worker rest: once push `sequence` has begun, no other worker waits for this worker
  // until wake(). Called when the worker has nothing to push after `sequence` for now. Does nothing
  // if the worker has already sent a later push.
  void rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);
  bool ends_rest(const PushId& id) const noexcept;
  // Ends a worker's rest. If the worker's clock is behind `slowest`, the slowest clock of the other
  // workers, moves the worker's clock up to `slowest`. So the other workers need not wait until
  // this worker catches up, and this worker may not get ahead of them because it rested.
  void wake(WorkerId worker, std::optional<std::int64_t> slowest);
  bool takes_part(WorkerId worker, std::uint32_t incarnation) const noexcept;

  // Records a push of an active worker. Returns false for a push that is known already and must not
  // be applied again.
  bool accept(const PushId& id);
  // Returns the sequence of the last accepted push of the worker's newest incarnation; 0 for an
  // unknown worker.
  std::uint64_t accepted(WorkerId worker) const noexcept;
  // Returns whether a restored snapshot contains the push, applied or dropped. Its worker has not
  // received the answer.
  bool is_restored(const PushId& id) const noexcept;
  // Moves the clock of the push's worker to this push. Called when the update with this push
  // begins, or when the push is dropped.
  void advance(const PushId& id);

  // Returns whether the values include all of the worker's own pushes up to `sequence`
  // (read-my-writes) and the worker is not too far ahead. Source: Ho et al. 2013, "More effective
  // distributed ML via a stale synchronous parallel parameter server", conditions (1), (3), (4): a
  // worker at clock c sees all updates of clocks up to c - max_staleness - 1.
  bool may_read(WorkerId worker, std::uint64_t sequence) const noexcept;
  // Returns whether the values include all of the worker's own pushes up to `sequence`. This is the
  // first condition of may_read().
  bool includes(WorkerId worker, std::uint64_t sequence) const noexcept;
  // Returns the worker's clock minus max_staleness: the clock that all awaited workers must have
  // reached before this worker may read. Returns nullopt unless the rule is kSsp, and for an
  // unknown worker. Between two join() calls of a worker, the result for the worker never
  // decreases.
  std::optional<std::int64_t> least_clock_for(WorkerId worker) const noexcept;
  // Returns the least clock of all awaited workers. Returns nullopt unless the rule is kSsp, and if
  // no worker is awaited. The second condition of may_read() is that slowest() >=
  // least_clock_for(worker); the condition holds if either function returns nullopt.
  std::optional<std::int64_t> slowest() const noexcept;
  // Returns whether this push may begin according to hold() and limit(), with which a snapshot
  // restricts pushes; true without such a restriction.
  bool snapshot_lets_begin(const PushId& id) const noexcept;
  // Returns whether the rule drops this push because the values have been updated since its worker
  // read them.
  bool is_late(const PushRequest& push, std::uint64_t version) const noexcept;
  // Chooses the pushes that make up the next update of this version. `waiting` holds pushes in
  // order of arrival; the positions of the chosen pushes are appended to `chosen`, which must be
  // empty. `chosen` stays empty if no update is due. Under kSync the function chooses one push of
  // each active worker, but not the `backup_workers` pushes that arrive last. It also chooses
  // waiting pushes of workers that have left. Under kQuorum it chooses all pushes once
  // merge_time() is not after `now`. Under other rules it chooses the first push that
  // snapshot_lets_begin() accepts.
  void choose(std::span<const PushRequest> waiting, std::uint64_t version, ShardTime now,
              std::vector<std::size_t>& chosen) const;
  // Under kQuorum: returns when the waiting pushes make up an update, if no other push comes;
  // nullopt if they wait for more pushes, and under other rules.
  std::optional<ShardTime> merge_time(std::span<const PushRequest> waiting) const;

  // Restrict for a snapshot which pushes may begin. After hold() no push may begin. After limit()
  // only pushes up to these clocks may begin, and no push of a worker that is not in `clocks` or
  // that joined after hold(). release() removes the restriction.
  void hold() noexcept;
  void limit(std::span<const WorkerClock> clocks) noexcept;
  void release() noexcept { is_limited_ = false; }
  // Returns whether every active worker has reached its snapshot limit, the last push that limit()
  // lets begin. A worker has reached its limit when this push has begun or a later push was
  // accepted. After a later push, a worker does not send missing earlier pushes any more. Pushes up
  // to the limits may still wait.
  bool has_reached_limits() const noexcept;

  // Returns the clocks of all known workers, sorted by worker number.
  std::vector<WorkerClock> clocks() const;
  // Returns the clocks of the workers that have joined since restore().
  std::vector<WorkerClock> joined_clocks() const;
  // Forgets all known workers. Then makes the workers of these clocks known, as inactive workers.
  void restore(std::span<const WorkerClock> clocks);

 private:
  struct Member {
    WorkerId worker = 0;
    std::uint32_t incarnation = 0;
    bool is_active = false;
    std::uint64_t accepted = 0;  // sequence of the worker's last push
    std::uint64_t begun = 0;    // sequence of the last push that was dropped or began to be applied
    std::int64_t offset = 0;    // the worker's clock is begun + offset
    std::uint64_t limit = 0;    // during a snapshot: the last push that may begin
    bool is_held_back = false;  // joined after hold(): limit() does not change its limit
    bool is_restored = false;   // known from restore(); has not joined since
    std::uint64_t restored = 0;  // the last push in the restored snapshot
    bool rests = false;          // set once the push `rests_after` has begun
    std::uint64_t rests_after = 0;
    std::int64_t clock() const noexcept { return static_cast<std::int64_t>(begun) + offset; }
    bool is_awaited() const noexcept { return is_active && !(rests && begun >= rests_after); }
  };
  // Returns the position of the first member with the number `worker` or a larger one.
  std::size_t position_of(WorkerId worker) const noexcept;
  Member* find(WorkerId worker) noexcept;
  const Member* find(WorkerId worker) const noexcept;
  // count() adds the member to the counts of awaited workers if it is awaited, uncount() removes
  // it. Code that changes a member's clock, or whether the member is awaited, calls uncount()
  // before and count() after the change.
  void count(const Member& member);
  void uncount(const Member& member);
  // Returns how many active workers an update of this version waits for; 0 when no worker is
  // active.
  std::size_t num_awaited(std::span<const PushRequest> waiting) const;

  ConsistencyOptions options_;
  ShardTime grace_{0};
  std::vector<Member> members_;  // sorted by worker: searched at every push
  std::size_t awaited_ = 0;      // number of awaited members
  // Under kSsp: the number of awaited members by clock. Because of this map a push need not look at
  // the clocks of all other workers; a job may have 1,000 workers.
  std::map<std::int64_t, std::size_t> awaited_by_clock_;
  bool is_limited_ = false;
};

}  // namespace syncopate::ps
