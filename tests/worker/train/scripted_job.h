// A ScriptedJob is the asynchronous job of one replica. A test scripts its leases (batches) and its
// assignments (evaluations and checkpoints); the replica's own strategy makes the updates. Records
// the calls of the training loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "strategies/asynchronous_job.h"
#include "strategies/strategy.h"

namespace syncopate {

class ScriptedJob final : public AsynchronousJob {
 public:
  // Counts the updates of the replica from now on. `strategy` must outlive the job.
  ScriptedJob(Strategy& strategy, std::vector<ps::SampleRange> leases, int replica = 0);

  // The test fills in the following script before training begins. The job itself fills in the
  // status and the position of an assignment, when the assignment is due.
  std::map<std::int64_t, Assignment> assignment_after_step;
  std::deque<Assignment> assignments_at_end;
  std::optional<Assignment> assignment_when_stopped;
  bool is_reporter_in_script = true;
  // The number of steps that other workers are assumed to train with each step of this replica,
  // each with the scores of this replica's step.
  std::int64_t steps_of_others = 0;
  // The values that the job returns as a snapshot in place of the live values.
  std::optional<Snapshot> copy;
  std::function<void()> before_lease = [] {};  // is called on the reader's thread
  std::function<void()> when_asked_to_stop = [] {};

  // The calls of the training loop so far, in order: "step 0:16" (epoch and first sample of the
  // batch), "read 1" or "read 1 with slots" (a read of snapshot 1), "done 1", "refresh", "stop 1".
  std::vector<std::string> events;
  std::vector<ps::SampleRange> trained;

  std::optional<ps::SampleRange> next_lease() override;
  void begin_step(const ps::SampleRange& batch) override;
  JobStatus status() const override { return status_; }
  bool is_reporter() const override { return is_reporter_in_script; }
  std::optional<Assignment> next_assignment() override;
  std::optional<Assignment> wait_assignment() override;
  Snapshot read_snapshot(const Assignment& assignment, bool with_slots) override;
  void done(const Assignment& assignment) override;
  void refresh() override;
  void request_stop(ps::StopKind kind) override;

  void count(const Scores& scores);  // called for each step's update

 private:
  Assignment as_of_now(Assignment assignment) const;

  Strategy& strategy_;
  std::mutex mutex_;  // guards the leases, which a reader's thread takes
  std::deque<ps::SampleRange> leases_;
  bool stopping_ = false;
  JobStatus status_;
  ps::DataPosition position_;
  std::optional<std::uint64_t> open_read_;
};

// A ScriptedStrategy is a strategy of one task that also has an AsynchronousJob for each replica;
// `inner` does the rest.
class ScriptedStrategy final : public Strategy {
 public:
  explicit ScriptedStrategy(std::unique_ptr<Strategy> inner) : inner_(std::move(inner)) {}
  Strategy& inner() noexcept { return *inner_; }
  std::vector<AsynchronousJob*> jobs;  // indexed by replica

  std::span<Replica> replicas() noexcept override { return inner_->replicas(); }
  int replicas_in_sync() const noexcept override { return 1; }
  InputShard input_shard() const noexcept override { return inner_->input_shard(); }
  bool is_chief() const noexcept override { return inner_->is_chief(); }
  void for_each_replica(const std::function<void(Replica&)>& task) override {
    inner_->for_each_replica(task);
  }
  Snapshot snapshot() override { return inner_->snapshot(); }
  void restore(const Snapshot& saved) override { inner_->restore(saved); }
  Job job(int replica) noexcept override { return jobs[static_cast<std::size_t>(replica)]; }
  void begin(const ps::RunPosition& start) override { inner_->begin(start); }
  void leave() override { inner_->leave(); }
  void fail(std::string_view reason, bool ends_job) noexcept override {
    inner_->fail(reason, ends_job);
  }
  void abort(std::string_view reason) noexcept override { inner_->abort(reason); }

 private:
  std::unique_ptr<Strategy> inner_;
};

// Copies all blocks of a snapshot into memory of their own.
Snapshot deep_copy(const Snapshot& snapshot);

// Returns the whole batches of `epochs` epochs, in order; the remainder is dropped.
std::vector<ps::SampleRange> batches_in_order(std::int64_t dataset_size, std::int64_t batch_size,
                                              std::int64_t epochs);

}  // namespace syncopate
