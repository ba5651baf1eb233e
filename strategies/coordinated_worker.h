// Code for the workers of jobs with a coordinator. This header declares their variable store, for
// variables on parameter servers or in a shard of this process (central_storage_asynchronous.cc);
// the transports to parameter servers; and the conversion of the coordinator's messages
// (ps/wire/messages.fbs).
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "models/graph/graph.h"
#include "models/optim/optimizer.h"
#include "models/tensor/parameter_arena.h"
#include "ps/client/client.h"
#include "ps/wire/message.h"
#include "strategies/asynchronous_job.h"
#include "strategies/strategy.h"
#include "strategies/strategy_options.h"

namespace syncopate {

// Connects one worker to the shards with its variables. Used by the replica's thread only. Every
// function throws PeerError if the job has failed.
class ShardTransport {
 public:
  virtual ~ShardTransport() = default;
  // Begins a step: the pushes that follow belong to it. If shard 0 leases batches, the transport
  // sets step.batches.
  virtual void begin_step(ps::StepInfo step) = 0;
  // Sends the bucket's gradients, and requests the bucket's next values. Until wait_values(bucket)
  // returns, the transport reads the gradients and writes the values of this bucket in the
  // replica's memory.
  virtual void push(BucketId bucket) = 0;
  virtual void wait_values(BucketId bucket) = 0;
  // Ends the step; called after the step's last push. In a synchronous job, waits for the step
  // reports of all workers and returns the sum of the reports. In other jobs, returns nullopt.
  virtual std::optional<StepReport> finish_step() = 0;
  // Returns `times`, which the VariableStore has measured, plus the bytes and waits that the
  // transport has measured.
  virtual CommunicationTimes with_traffic(CommunicationTimes times) const = 0;
};

// Returns what a worker sends with the pushes of a step or round, without batches. report: the sums
// of the step or round.
ps::StepInfo step_info_of(const Replica& replica, const StepReport& report, float learning_rate,
                          int lanes);

// The transport of a synchronous worker with parameter servers, over ps::Client.
class ServedWorker : public ShardTransport {
 public:
  explicit ServedWorker(ps::Client& client) : client_(client) {}

  void begin_step(ps::StepInfo step) override;
  void push(BucketId bucket) override { client_.push(bucket); }
  void wait_values(BucketId bucket) override { client_.wait_values(bucket); }
  std::optional<StepReport> finish_step() override;
  CommunicationTimes with_traffic(CommunicationTimes times) const override;

 protected:
  ps::Client& client() const noexcept { return client_; }

 private:
  ps::Client& client_;
};

// The transport of an asynchronous worker with parameter servers; also implements the worker's
// AsynchronousJob.
class LeasedWorker final : public ServedWorker, public AsynchronousJob {
 public:
  // Keeps references: `replica`, `client` and `options` must outlive the worker.
  LeasedWorker(Replica& replica, ps::Client& client, const StrategyOptions& options)
      : ServedWorker(client), replica_(replica), options_(options) {}

  void begin_step(ps::StepInfo step) override;
  std::optional<StepReport> finish_step() override;
  CommunicationTimes with_traffic(CommunicationTimes times) const override;

  std::optional<ps::SampleRange> next_lease() override { return client().next_lease(); }
  void begin_step(const ps::SampleRange& batch) override { batches_.push_back(batch); }
  JobStatus status() const override;
  bool is_reporter() const override {
    return client().status().lowest_worker == options_.parameter_server.cluster.index;
  }
  std::optional<Assignment> next_assignment() override;
  std::optional<Assignment> wait_assignment() override;
  Snapshot read_snapshot(const Assignment& assignment, bool with_slots) override;
  void done(const Assignment& assignment) override {
    client().complete_assignment(assignment.snapshot_id, assignment.rules);
  }
  void refresh() override;
  void request_stop(ps::StopKind kind) override { client().request_stop(kind); }
  // Forgets the batches that are not pushed, because the servers have gone back to an earlier step.
  void drop_batches() noexcept { batches_.clear(); }

 private:
  Replica& replica_;
  const StrategyOptions& options_;
  std::vector<ps::SampleRange> batches_;  // trained since the last push
};

// Returns the VariableStore of a worker, over any ShardTransport. New values arrive in the
// replica's arena as answers to the pushes of the previous step. With options.clip_norm, the worker
// clips its own gradients, and pushes them once the gradients of all buckets are complete. A store
// that pushes displacements is a DisplacementVariables. Used by the replica's thread. `replica` and
// `transport` must outlive the store.
std::unique_ptr<VariableStore> make_worker_variables(Replica& replica, ShardTransport& transport,
                                                     const StrategyOptions& options);

// Returns the optimizer of the shards of an asynchronous job.
std::unique_ptr<Optimizer> make_optimizer_of_shards(const StrategyOptions& options);

// Returns the declaration of a job with this number of workers and with the variables divided into
// these buckets. `owners` has the server of each bucket; if empty, server 0 owns all buckets.
ps::wire::DeclarationT declare_job(const StrategyOptions& options, const Graph& graph,
                                   std::span<const Bucket> buckets, std::span<const int> owners,
                                   int workers);

// Removes the slots of a shard that a checkpoint does not contain.
void remove_collected(std::vector<Snapshot::Slot>& slots);

JobStatus job_status_of(const ps::wire::JobStatusT& status);
Assignment assignment_of(const ps::wire::AssignmentT& assignment);

}  // namespace syncopate
