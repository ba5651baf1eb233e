// The variables of a worker whose job has a coordinator: one VariableStore over two transports, one
// to parameter servers (parameter_server.cc) and one to a shard in this process
// (central_storage_asynchronous.cc). Values arrive in the replica's arena as answers to the pushes
// of the step before.
#pragma once

#include <memory>
#include <optional>

#include "ps/client/client.h"
#include "strategies/strategy.h"

namespace syncopate {

// Connects one worker to the shards that hold its variables. Used by the replica's thread only.
// Every function throws PeerError when the job has failed.
class ShardTransport {
 public:
  virtual ~ShardTransport() = default;
  // The pushes that follow belong to one step. The transport adds the batch, which it knows.
  virtual void begin_step(ps::StepInfo step) = 0;
  // Sends the bucket's gradients, and asks for its next values. The replica's gradients and values
  // of the bucket are in use until wait_values(bucket) returns.
  virtual void push(BucketId bucket) = 0;
  virtual void wait_values(BucketId bucket) = 0;
  // Call after the last push of a step. Under a synchronous job, waits for the reports of all
  // workers and returns their sum; else returns nothing.
  virtual std::optional<StepReport> finish_step() = 0;
  // Adds what the transport has counted to the times that the store has measured.
  virtual CommunicationTimes with_traffic(CommunicationTimes times) const = 0;
};

// For the replica's thread. Replica and transport outlive the store.
std::unique_ptr<VariableStore> make_worker_variables(Replica& replica, ShardTransport& transport,
                                                     int lanes);

}  // namespace syncopate
