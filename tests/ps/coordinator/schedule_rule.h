// Implements the consistency rules in their simplest form: which push a server of a random job
// applies when.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "ps/coordinator/ledger.h"
#include "ps/shard/consistency.h"
#include "ps/shard/shard_requests.h"

namespace syncopate::ps {

struct TrainingPush {
  PushId id;
  std::uint64_t version = 0;
  std::vector<SampleRange> batches;
};

class ScheduledRule {
 public:
  explicit ScheduledRule(const ConsistencyOptions& options) : options_(options) {}

  // Adds a worker, with the clock of the slowest member.
  void join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);
  void leave(WorkerId worker, std::uint32_t incarnation);
  // Lets the worker rest: no task waits for it until it joins again, except a snapshot if the
  // worker has pushed to another server since.
  void rest(WorkerId worker, std::uint32_t incarnation);
  bool is_resting(WorkerId worker, std::uint32_t incarnation) const;
  bool takes_part(WorkerId worker, std::uint32_t incarnation) const;
  // Records a push; returns false if the push is known already.
  bool accept(const PushId& id);
  std::uint64_t accepted(WorkerId worker) const { return members_.at(worker).accepted; }
  void advance(const PushId& id);

  bool may_read(WorkerId worker, std::uint64_t sequence) const;
  bool snapshot_lets_begin(const PushId& id) const;
  bool is_late(const TrainingPush& push, std::uint64_t version) const;
  // Returns the indices of the pushes that form the next update.
  std::vector<std::size_t> choose(const std::vector<TrainingPush>& waiting,
                                  std::uint64_t version) const;

  void hold();
  void limit(const std::vector<WorkerClock>& entries);
  void release() { is_limited_ = false; }
  // Returns whether no push is open and no missing push can arrive.
  bool has_reached_limits(const std::vector<TrainingPush>& waiting) const;
  std::vector<WorkerClock> clocks() const;
  // Returns the clocks without those of workers that have not joined since restore().
  std::vector<WorkerClock> joined_clocks() const;
  // Continues from the clocks of a snapshot; no worker takes part until it joins.
  void restore(const std::vector<WorkerClock>& clocks);
  bool is_restored(const PushId& id) const;  // whether the push is in the restored snapshot

 private:
  struct Member {
    std::uint32_t incarnation = 0;
    bool is_active = false;
    bool is_resting = false;
    std::uint64_t accepted = 0;
    std::uint64_t begun = 0;
    std::uint64_t restored = 0;  // the last push in the restored snapshot
    std::int64_t offset = 0;
    std::uint64_t limit = std::numeric_limits<std::uint64_t>::max();
    bool has_joined = true;     // since restore()
    bool is_held_back = false;  // joined after hold(): its pushes wait for the snapshot
    std::int64_t clock() const { return static_cast<std::int64_t>(begun) + offset; }
  };

  ConsistencyOptions options_;
  std::map<WorkerId, Member> members_;
  bool is_limited_ = false;
};

}  // namespace syncopate::ps
