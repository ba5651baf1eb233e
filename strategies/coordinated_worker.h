// What the workers of a job with a coordinator share, whether the variables are on parameter
// servers (parameter_server.cc) or in a shard of this process (central_storage_asynchronous.cc):
// the variable store, and the conversion of the coordinator's messages (ps/wire/messages.fbs).
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "models/graph/graph.h"
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
  // Declares the step to which the pushes that follow belong. The transport adds the batch.
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

// Returns the variables of a worker: one VariableStore over either transport. Values arrive in the
// replica's arena as answers to the pushes of the step before. For the replica's thread. Replica
// and transport outlive the store.
std::unique_ptr<VariableStore> make_worker_variables(Replica& replica, ShardTransport& transport,
                                                     int lanes);

// Declares the job that `workers` workers train, with its variables divided into these buckets.
// owners: the server of each bucket; empty: server 0 owns all.
ps::wire::DeclarationT declare_job(const StrategyOptions& options, const Graph& graph,
                                   std::span<const Bucket> buckets, std::span<const int> owners,
                                   int workers);

JobStatus job_status_of(const ps::wire::JobStatusT& status);
Assignment assignment_of(const ps::wire::AppointmentT& appointment);

}  // namespace syncopate
