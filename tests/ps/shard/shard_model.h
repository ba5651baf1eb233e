// A slow and simple model of a shard. Random schedules (shard_schedule.h) compare a shard with it:
// workers push, send again, read, leave and come back, threads claim pieces in any order, and
// snapshots are taken. Worker w's gradients are whole numbers at element w and the learning rate is
// 1, so the values show which pushes they contain.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ps/shard/shard.h"

namespace syncopate::ps {

// ModelRequest is a request to the shard; its index is the token.
struct ModelRequest {
  bool is_push = false;
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  BucketId bucket = 0;
  std::uint64_t sequence = 0;
  std::uint64_t version = 0;
  bool is_duplicate = false;
  bool wants_values = false;
  std::int64_t samples = 0;  // of a push
  ShardTime arrived{0};      // of a push
  std::uint64_t after = 0;   // the worker's last push that the values must include
  bool is_consumed = false;  // true if the push was applied or dropped
  bool is_closed = false;
  std::vector<float> gradient;
  std::vector<float> values;
};

class ModelBucket {
 public:
  ModelBucket(const ConsistencyOptions& options, int workers);

  struct Worker {
    std::uint32_t incarnation = 0;
    bool is_active = false;
    std::int64_t offset = 0;
    std::uint64_t accepted = 0;
    std::uint64_t done = 0;
    bool rests = false;  // if true, the worker rests once its push `rests_after` is done
    std::uint64_t rests_after = 0;
    bool is_awaited() const { return is_active && !(rests && done >= rests_after); }
    std::int64_t clock() const { return static_cast<std::int64_t>(done) + offset; }
  };
  Worker& worker(WorkerId worker) { return workers_[static_cast<std::size_t>(worker)]; }
  std::uint64_t version() const { return history_.size(); }
  const std::vector<float>& values() const { return history_.back(); }

  // Returns whether a read may be answered. Ho et al., conditions (1) and (3): no worker is further
  // behind than the bound; (4): the values include the worker's own pushes.
  bool may_read(const ModelRequest& request);
  // apply(), drop(), answer() and check_snapshot() return a description of a deviation of the shard
  // from the model, or "".
  // all_samples: of all pushes of the update.
  std::string apply(ModelRequest& push, const ShardEvent& event, std::int64_t all_samples);
  std::string drop(ModelRequest& push);
  std::string answer(const ModelRequest& request, const ShardEvent& event);
  std::string check_snapshot(const std::map<WorkerId, WorkerClock>& entries,
                             const ShardSnapshot& copy, BucketId bucket);

  int last_update_pushes() const { return last_update_pushes_; }

 private:
  const ConsistencyOptions options_;
  std::vector<Worker> workers_;
  std::vector<std::vector<float>> history_;  // indexed by version - 1
  int last_update_pushes_ = 0;
};

}  // namespace syncopate::ps
