// One random schedule of workers, threads and cuts on a shard, held against the model.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/base/random.h"
#include "ps/shard/shard.h"
#include "tests/ps/shard/shard_model.h"

namespace syncopate::ps {

class ShardSchedule {
 public:
  explicit ShardSchedule(std::uint64_t number);

  // What went wrong first, or "".
  std::string run();
  std::string describe() const;
  // How much of what is rare has happened.
  struct Tally {
    int updates = 0;
    int late = 0;
    int answers_that_waited = 0;
    int cuts = 0;
  };
  const Tally& tally() const { return tally_; }

 private:
  // Reads all, then pushes bucket after bucket, step after step; in any order, since buckets may be
  // on shards of their own.
  struct Client {
    std::uint32_t incarnation = 0;
    bool is_active = false;
    std::uint64_t step = 1;  // that it pushes next, or is pushing
    int pushed = 0;          // buckets of this step
    std::vector<int> order;  // of this step's pushes
    int answers = 0;         // that it waits for
    std::vector<std::uint64_t> versions;
  };

  int below(int bound);
  bool one_in(int n) { return below(n) == 0; }
  bool is_plain_sync() const {
    return options_.consistency == Consistency::kSync && options_.backup_workers == 0;
  }
  void expect(const std::string& wrong);

  void act();
  bool can_push(const Client& client) const;
  void push(int worker);
  void push_again(int worker);
  void read(int worker, int bucket);
  void join(int worker, bool as_new);
  void join_model(int worker);
  void rest(int worker);
  void wake_model(int worker);
  std::optional<std::int64_t> slowest_but(int worker);
  void leave(int worker);
  void freeze();
  void cut();

  bool claim(int bucket);
  void update_one(int bucket);
  void end_task(int bucket);
  void drain(int bucket);
  void drain();
  void hear(int bucket, const std::vector<ShardEvent>& events);
  void hear(const ShardEvent& event);
  void check_idle(int bucket);

  bool wants_to_go_on(int worker);
  void finish();

  const RandomStream random_;
  std::uint64_t drawn_ = 0;
  ConsistencyOptions options_;
  int workers_;
  int buckets_;
  std::optional<Shard> shard_;
  std::vector<ModelBucket> models_;
  std::vector<Client> clients_;
  std::deque<ModelRequest> requests_;
  std::vector<std::vector<Piece>> pieces_;  // by bucket: claimed
  std::vector<std::uint64_t> heard_;        // events, by bucket
  std::shared_ptr<ShardSnapshot> copy_;     // of the cut under way
  std::uint64_t cuts_begun_ = 0;
  std::map<WorkerId, WorkerClock> entries_;
  enum class Cut { kNone, kFrozen, kCutting } cut_ = Cut::kNone;
  int uncut_ = 0;  // buckets that are not copied yet
  std::string failure_;
  Tally tally_;
};

}  // namespace syncopate::ps
