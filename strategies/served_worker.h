// A worker of parameter servers as the trainer sees it: the three verbs on a ps::Client, and where
// workers keep no step what shard 0 hands out. Made by parameter_server.cc.
#pragma once

#include <memory>

#include "ps/client/client.h"
#include "strategies/asynchronous_job.h"
#include "strategies/strategy.h"

namespace syncopate {

// What the step that begins trains: said by whoever leads it, sent along with its pushes.
struct StepContext {
  ps::SampleRange batch;
};

// All arguments but `options` outlive what is made. For the replica's thread.
std::unique_ptr<VariableStore> make_served_variables(Replica& replica, ps::Client& client,
                                                     const StepContext& context,
                                                     const StrategyOptions& options);
std::unique_ptr<AsynchronousJob> make_served_job(Replica& replica, ps::Client& client,
                                                 StepContext& context,
                                                 const StrategyOptions& options);

}  // namespace syncopate
