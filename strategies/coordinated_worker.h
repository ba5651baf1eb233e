// The workers of a job with a coordinator: the variable store that they share, whether the
// variables are on parameter servers or in a shard of this process
// (central_storage_asynchronous.cc); the workers of parameter servers; and the conversion of the
// coordinator's messages (ps/wire/messages.fbs).
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

// Connects one worker to the shards that hold its variables. Used by the replica's thread only.
// Every function throws PeerError when the job has failed.
class ShardTransport {
 public:
  virtual ~ShardTransport() = default;
  // Declares a step; the pushes that follow belong to it. The transport adds the batch.
  virtual void begin_step(ps::StepInfo step) = 0;
  // Sends the bucket's gradients, and asks for its next values. The replica's gradients and values
  // of the bucket are in use until wait_values(bucket) returns.
  virtual void push(BucketId bucket) = 0;
  virtual void wait_values(BucketId bucket) = 0;
  // Call after the last push of a step. Under a synchronous job, waits for the reports of all
  // workers and returns their sum; else returns nothing.
  virtual std::optional<StepReport> finish_step() = 0;
  // Adds the transport's bytes and waits to the times that the store has measured.
  virtual CommunicationTimes with_traffic(CommunicationTimes times) const = 0;
};

// The transport of a synchronous worker of parameter servers: the client of the servers.
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

// The transport of an asynchronous worker of parameter servers, and its view of the job.
class LeasedWorker final : public ServedWorker, public AsynchronousJob {
 public:
  // The constructor keeps references: `replica` and `client` outlive the worker.
  LeasedWorker(Replica& replica, ps::Client& client, const StrategyOptions& options)
      : ServedWorker(client),
        replica_(replica),
        index_(options.parameter_server.cluster.index),
        optimizer_(options.optimizer) {}

  void begin_step(ps::StepInfo step) override;
  std::optional<StepReport> finish_step() override;

  std::optional<ps::SampleRange> next_lease() override { return client().next_lease(); }
  void begin_step(const ps::SampleRange& batch) override { batch_ = batch; }
  JobStatus status() const override;
  bool is_reporter() const override { return client().status().lowest_worker == index_; }
  std::optional<Assignment> next_assignment() override;
  std::optional<Assignment> wait_assignment() override;
  Snapshot read_snapshot(const Assignment& assignment, bool with_slots) override;
  void done(const Assignment& assignment) override {
    client().complete_assignment(assignment.snapshot_id, assignment.rules);
  }
  void refresh() override;
  void request_stop(ps::StopKind kind) override { client().request_stop(kind); }

 private:
  Replica& replica_;
  const int index_;
  const OptimizerOptions optimizer_;
  ps::SampleRange batch_;  // the samples of the current step
};

// Returns the variables of a worker: one VariableStore over either transport. Values arrive in the
// replica's arena as answers to the pushes of the step before. For the replica's thread. Replica
// and transport outlive the store. With options.clip_norm the worker clips its own gradients, and
// pushes them when all are complete.
std::unique_ptr<VariableStore> make_worker_variables(Replica& replica, ShardTransport& transport,
                                                     const StrategyOptions& options);

// Declares the job that `workers` workers train, with its variables divided into these buckets.
// owners: the server of each bucket; empty: server 0 owns all.
ps::wire::DeclarationT declare_job(const StrategyOptions& options, const Graph& graph,
                                   std::span<const Bucket> buckets, std::span<const int> owners,
                                   int workers);

JobStatus job_status_of(const ps::wire::JobStatusT& status);
Assignment assignment_of(const ps::wire::AssignmentT& assignment);

}  // namespace syncopate
