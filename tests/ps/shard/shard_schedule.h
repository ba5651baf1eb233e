// Runs one random schedule of workers, threads and snapshots on a shard, and compares the shard
// with the model.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/base/random.h"
#include "ps/shard/shard.h"
#include "tests/ps/shard/shard_model.h"

namespace syncopate::ps {

class ShardSchedule {
 public:
  // workers: 0 for a random number of few workers.
  explicit ShardSchedule(std::uint64_t number, int workers = 0);

  // Runs the schedule; returns the first deviation of the shard from the model, or "".
  std::string run();
  std::string describe() const;
  // Counts how often rare events have happened.
  struct StepTotals {
    int updates = 0;
    int late = 0;
    int answers_that_waited = 0;
    int snapshots = 0;
  };
  const StepTotals& tally() const { return tally_; }

 private:
  // A Client is a worker that reads all buckets, then pushes them step by step. The order of the
  // buckets within a step is random, since buckets may be on different shards.
  struct Client {
    std::uint32_t incarnation = 0;
    bool is_active = false;
    std::uint64_t step = 1;  // the next or current step
    int pushed = 0;          // counts buckets pushed in this step
    std::vector<int> order;  // the order of the buckets in this step
    int answers = 0;         // the number of answers that the worker waits for
    std::vector<std::uint64_t> versions;
  };

  int below(int bound);
  bool one_in(int n) { return below(n) == 0; }
  bool is_plain_sync() const {
    return options_.consistency == Consistency::kSync && options_.backup_workers == 0;
  }
  // Records the first non-empty description of a failure.
  void expect(const std::string& failure);

  void act();
  bool can_push(const Client& client) const;
  void push(int worker);
  void push_again(int worker);
  void read(int worker, int bucket);
  void join(int worker, bool as_new);
  void join_model(int worker);
  void rest(int worker);
  void wake_model(int worker);
  std::optional<std::int64_t> slowest_other(int worker);
  void leave(int worker);
  void freeze();
  void begin_snapshot();

  bool claim(int bucket);
  void update_one(int bucket);
  void end_task(int bucket);
  void drain(int bucket);
  void drain();
  void on_event(int bucket, const std::vector<ShardEvent>& events);
  void on_event(const ShardEvent& event);
  void check_idle(int bucket);

  bool waits_for_others(int bucket);
  bool can_continue(int worker);
  void finish();

  const RandomStream random_;
  std::uint64_t drawn_ = 0;
  ShardTime now_{0};
  std::int64_t samples_of_update_ = 0;  // of the update whose events are being judged
  ConsistencyOptions options_;
  int workers_;
  int buckets_;
  std::optional<Shard> shard_;
  std::vector<ModelBucket> models_;
  std::vector<Client> clients_;
  std::deque<ModelRequest> requests_;
  std::vector<std::vector<Piece>> pieces_;  // claimed pieces, by bucket
  std::shared_ptr<ShardSnapshot> target_;   // the snapshot under way
  std::uint64_t snapshots_begun_ = 0;
  std::map<WorkerId, WorkerClock> clocks_;
  std::set<WorkerId> joined_since_freeze_;  // new incarnations only
  enum class Phase { kNone, kFrozen, kCopying } phase_ = Phase::kNone;
  int not_copied_ = 0;  // counts buckets to copy
  std::string failure_;
  StepTotals tally_;
};

}  // namespace syncopate::ps
