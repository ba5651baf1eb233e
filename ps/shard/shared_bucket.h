// One bucket of a shard without its values: its version, what waits, the rule, and the one piece of
// work that is under way. Every call begins the next piece when none is. ps/shard/shard.h locks it,
// and does the work.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ps/shard/bucket_rule.h"
#include "ps/shard/bucket_task.h"
#include "ps/shard/shard_requests.h"
#include "ps/shard/shard_state.h"
#include "ps/shard/staleness.h"

namespace syncopate::ps {

// One thread at a time; the task's content may be read by who holds a part of it.
class SharedBucket {
 public:
  SharedBucket(BucketId bucket, std::int64_t elements, const ConsistencyOptions& consistency);

  std::uint64_t version() const noexcept { return version_; }
  const BucketTask& task() const noexcept { return task_; }
  const std::map<WorkerId, StalenessHistogram>& staleness() const noexcept { return staleness_; }

  // As Shard's functions of these names. Lengths have been checked.
  void join(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence,
            std::int64_t offset);
  BucketRule::Standing standing(WorkerId worker, std::uint32_t incarnation,
                                std::uint64_t sequence) const noexcept {
    return rule_.standing(worker, incarnation, sequence);
  }
  void leave(WorkerId worker, std::uint32_t incarnation);
  void rest(WorkerId worker, std::uint32_t incarnation, std::uint64_t sequence);
  bool ends_rest(const PushId& id) const noexcept { return rule_.ends_rest(id); }
  void wake(WorkerId worker, std::optional<std::int64_t> slowest) { rule_.wake(worker, slowest); }
  void set_consistency(const ConsistencyOptions& consistency);
  bool push(const PushRequest& request);
  bool read(const ReadRequest& request);

  // Elements [begin, end) of the bucket, of task().id.
  struct Part {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };
  std::optional<Part> claim(std::int64_t most_elements);
  // Whether somebody may hold this part: of the task under way, and claimed.
  bool is_under_way(std::uint64_t task, Part part) const noexcept;
  // The part is done. With the last one all events so far are appended, and the next task begins.
  void finish(Part part, std::vector<ShardEvent>& events);

  // Cuts, in this order; `number` tells them apart. Nothing begins any more.
  void hold(std::uint64_t number);
  std::vector<CutEntry> clocks() const { return rule_.clocks(); }
  // What is up to these begins.
  void limit(std::span<const CutEntry> entries);
  // Copied to this one when all of it has been applied, unless the bucket is held for another cut
  // or for none: nothing happens then.
  void cut(std::span<const CutEntry> entries, const CutOrder& order);
  void thaw();

  // Alone with the bucket.
  bool is_at_work() const noexcept {
    return task_.kind != BucketTask::Kind::kNone && task_.is_taken;
  }
  void restore(const ShardState::Variable& state);
  // The values are about to be written from outside, as this version. False: too late, or version
  // 0, and nothing has changed.
  bool rewrite(std::uint64_t version);

 private:
  struct WaitingRead {
    std::uint64_t after = 0;  // the last of its own pushes that it must see
    Destination destination;
  };
  // What a worker computes with, where a rule asks for it.
  struct ReadCopy {
    std::uint32_t incarnation = 0;
    std::uint64_t version = 0;  // 0: of none
    std::vector<float> values;
  };

  void say(ShardEvent::Kind kind, const PushId& id, std::uint64_t token);
  // Its worker gets values once it may read, if it wants any.
  void answer_later(const PushRequest& push);

  // The next piece of work, unless one is under way.
  void begin_next();
  void begin(BucketTask::Kind kind);
  void drop_late_pushes();
  bool begin_cut();
  bool begin_copies();
  bool begin_update();
  // The learning rate, and the compensation, of one that is applied alone.
  void mind_staleness(const PushRequest& push);
  // Makes the reads that may be answered the task's.
  void take_reads();
  void end_update();
  void answer();

  bool compensates() const noexcept;
  bool is_ours(std::uint64_t version) const noexcept { return version > 0 && version <= version_; }
  std::uint64_t staleness_of(const PushRequest& push) const noexcept;  // 0: not known

  const BucketId bucket_;
  const std::int64_t elements_;
  BucketRule rule_;
  std::uint64_t version_ = 1;
  std::vector<PushRequest> waiting_;  // in order of arrival
  std::vector<WaitingRead> reads_;
  std::vector<ShardEvent> events_;  // not handed out yet
  std::uint64_t next_order_ = 0;
  BucketTask task_;
  std::uint64_t held_for_ = 0;  // the cut; 0: none
  CutOrder cut_;                // to be made; without a copy: none
  std::map<WorkerId, StalenessHistogram> staleness_;
  std::map<WorkerId, ReadCopy> read_copies_;
  std::vector<float> mean_square_;
  bool was_pushed_to_ = false;
  std::vector<std::size_t> chosen_;  // reused
};

}  // namespace syncopate::ps
