// Conversion between strategies and the coordinator's messages (ps/wire/messages.fbs): the
// declaration of a job, its status, and assignments.
#pragma once

#include <span>

#include "models/graph/graph.h"
#include "models/tensor/parameter_arena.h"
#include "ps/wire/message.h"
#include "strategies/asynchronous_job.h"
#include "strategies/strategy_options.h"

namespace syncopate {

// Declares the job that `workers` workers train, with its variables divided into these buckets.
// owners: the server of each bucket; empty: server 0 owns all.
ps::wire::DeclarationT declare_job(const StrategyOptions& options, const Graph& graph,
                                   std::span<const Bucket> buckets, std::span<const int> owners,
                                   int workers);

JobStatus job_status_of(const ps::wire::JobStatusT& status);
Assignment assignment_of(const ps::wire::AppointmentT& appointment);

}  // namespace syncopate
