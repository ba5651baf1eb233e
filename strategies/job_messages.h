// Between the words of a strategy whose job a coordinator leads and those of the wire
// (ps/wire/messages.fbs): what is declared, how far the job is, what a replica is appointed to.
#pragma once

#include <cstdint>
#include <span>

#include "models/graph/graph.h"
#include "models/tensor/parameter_arena.h"
#include "ps/wire/message.h"
#include "strategies/asynchronous_job.h"
#include "strategies/strategy.h"

namespace syncopate {

// What `workers` workers train, on variables cut into these buckets. owners: the server of each
// bucket; empty: server 0.
ps::wire::DeclarationT declare_job(const StrategyOptions& options, const Graph& graph,
                                   std::span<const Bucket> buckets, std::span<const int> owners,
                                   int workers);

JobStatus job_status_of(const ps::wire::JobStatusT& status);
Appointment appointment_of(const ps::wire::AppointmentT& appointment);

}  // namespace syncopate
