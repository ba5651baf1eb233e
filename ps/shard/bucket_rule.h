// The consistency rule of one bucket: which of the pushes that wait make up the next update, and
// who may read. It decides and remembers clocks; whoever owns it locks, sums and updates
// (ps/shard/shared_bucket.h). A push counts from the moment its update begins: whoever reads later
// sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ps/shard/consistency.h"
#include "ps/shard/shard_requests.h"

namespace syncopate::ps {

// Throws UsageError for options that contradict each other.
void check_consistency(const ConsistencyOptions& options);

// One thread at a time.
class BucketRule {
 public:
  explicit BucketRule(const ConsistencyOptions& options);

  const ConsistencyOptions& options() const noexcept { return options_; }
  void set_options(const ConsistencyOptions& options);

  // The worker takes part: a new one or a new incarnation that has pushed up to `sequence`, one
  // that comes back where it was (`sequence` is not looked at). Its clock is `offset` ahead of its
  // sequences. An earlier incarnation, and one that takes part already: nothing happens.
  void join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
            std::int64_t offset);
  // What one that joins so is measured by.
  struct Standing {
    std::optional<std::int64_t> slowest;  // clock of the others that take part
    std::uint64_t sequence = 0;           // of its own last push that counts
  };
  Standing standing(WorkerId worker, std::uint32_t incarnation,
                    std::uint64_t sequence) const noexcept;
  // Nobody waits for it. A stranger or another incarnation: nothing happens.
  void leave(WorkerId worker, std::uint32_t incarnation);
  // It has nothing to push after `sequence` for now: once that has begun, nobody waits for it until
  // wake(). A stranger, another incarnation, one that has gone on meanwhile: nothing happens.
  void rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);
  bool ends_rest(const PushId& id) const noexcept;
  // It goes on, at `slowest` of the clocks if that is later than its own: others must not wait for
  // it to catch up, nor may it gain on them by resting.
  void wake(WorkerId worker, std::optional<std::int64_t> slowest) noexcept;
  bool takes_part(WorkerId worker, std::uint32_t incarnation) const noexcept;

  // Of one that takes part: remembers the push. False: it is known, and must not be applied.
  bool accept(const PushId& id);
  // Of the newest incarnation's last accepted push; 0 for a stranger.
  std::uint64_t accepted(WorkerId worker) const noexcept;
  // The push's update begins, or it is dropped: the worker's clock is at its sequence.
  void advance(const PushId& id) noexcept;

  // The values have all the worker's own pushes up to `sequence` (read-my-writes), and it is not
  // too far ahead. Source: Ho et al. 2013, conditions (1), (3), (4): at clock c it sees all updates
  // of clocks up to c - max_staleness - 1.
  bool may_read(WorkerId worker, std::uint64_t sequence) const noexcept;
  bool may_begin(const PushId& id) const noexcept;
  // The values have been updated since this one's were read, under a rule that minds.
  bool is_late(const PushRequest& push, std::uint64_t version) const noexcept;
  // Positions, in `waiting` (in order of arrival), of the pushes that make up the next update of
  // this version; empty: none is due. Appended to `chosen`, which is empty.
  // kSync: those of all active workers but `backup_workers`, the first to come; those of workers
  // that have left go along. Else the first that may begin.
  void choose(std::span<const PushRequest> waiting, std::uint64_t version,
              std::vector<std::size_t>& chosen) const;

  // Cuts. No push begins.
  void hold() noexcept;
  // Those up to `entries` begin, and no others; who has none is not waited for.
  void limit(std::span<const CutEntry> entries) noexcept;
  void release() noexcept { is_limited_ = false; }
  // All active workers have got as far as their limits, or have passed over what is missing. Pushes
  // up to the limits may still wait.
  bool has_reached_limits() const noexcept;

  std::vector<CutEntry> clocks() const;  // by worker, ascending
  // These and no others are known; nobody takes part.
  void restore(std::span<const CutEntry> clocks);

 private:
  struct Member {
    WorkerId worker = 0;
    std::uint32_t incarnation = 0;
    bool is_active = false;
    std::uint64_t accepted = 0;  // sequence of its last push
    std::uint64_t begun = 0;     // of the last one that is applied or dropped, or is about to be
    std::int64_t offset = 0;     // its clock is begun + offset
    std::uint64_t limit = 0;     // last sequence that may begin, while limited
    bool is_of_restore = false;  // and has not joined since
    bool rests = false;          // once it has begun `rests_after`
    std::uint64_t rests_after = 0;
    std::int64_t clock() const noexcept { return static_cast<std::int64_t>(begun) + offset; }
    bool is_awaited() const noexcept { return is_active && !(rests && begun >= rests_after); }
  };
  Member* find(WorkerId worker) noexcept;
  const Member* find(WorkerId worker) const noexcept;
  // Active workers whose pushes of this version an update waits for, 0 when nobody is active.
  std::size_t awaited(std::span<const PushRequest> waiting) const;

  ConsistencyOptions options_;
  std::vector<Member> members_;  // by worker, ascending: all is looked up at every push
  bool is_limited_ = false;
};

}  // namespace syncopate::ps
