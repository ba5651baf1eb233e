// Shard 0 was started anew: what it knew of the job as of a snapshot.
#pragma once

#include "ps/coordinator/cuts.h"
#include "ps/coordinator/job.h"
#include "ps/coordinator/lease_queue.h"
#include "ps/coordinator/saved_job.h"

namespace syncopate::ps {

// Before anybody has said hello. Everybody is away, and welcome back as who he was. Throws
// FileError for a job with another number of servers.
void go_on_from(SavedJob saved, Job& job, LeaseQueue& leases, Cuts& cuts);

}  // namespace syncopate::ps
