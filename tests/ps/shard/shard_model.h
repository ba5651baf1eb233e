// A model of a shard that is slow and obvious, and random schedules that hold a shard against it:
// workers that push, send again, read, leave and come back, threads that take pieces in any order,
// and cuts. Worker w's gradients are whole numbers at element w, the learning rate is 1: the values
// tell which pushes they have.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ps/shard/shard.h"

namespace syncopate::ps {

// What was asked of the shard, by token.
struct ModelRequest {
  bool is_push = false;
  WorkerId worker = 0;
  std::uint32_t incarnation = 0;
  BucketId bucket = 0;
  std::uint64_t sequence = 0;
  std::uint64_t version = 0;
  bool is_duplicate = false;
  bool wants_values = false;
  std::uint64_t after = 0;   // the last own push that its values must have
  bool is_consumed = false;  // applied or dropped
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
    bool rests = false;  // once `rests_after` is done
    std::uint64_t rests_after = 0;
    bool is_awaited() const { return is_active && !(rests && done >= rests_after); }
    std::int64_t clock() const { return static_cast<std::int64_t>(done) + offset; }
  };
  Worker& worker(WorkerId worker) { return workers_[static_cast<std::size_t>(worker)]; }
  std::uint64_t version() const { return history_.size(); }
  const std::vector<float>& values() const { return history_.back(); }

  // Ho et al., (1) and (3): nobody is more than the bound behind; (4): it sees its own.
  bool may_read(const ModelRequest& request);
  // Each returns what is wrong, or "".
  std::string apply(ModelRequest& push, const ShardEvent& event);
  std::string drop(ModelRequest& push);
  std::string answer(const ModelRequest& request, const ShardEvent& event);
  std::string check_cut(const std::map<WorkerId, WorkerClock>& entries, const ShardSnapshot& copy,
                        BucketId bucket);

  int last_update_pushes() const { return last_update_pushes_; }

 private:
  const ConsistencyOptions options_;
  std::vector<Worker> workers_;
  std::vector<std::vector<float>> history_;  // by version - 1
  int last_update_pushes_ = 0;
};

}  // namespace syncopate::ps
