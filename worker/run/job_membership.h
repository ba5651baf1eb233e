// Functions with which a task joins its job and reports its failure to the other tasks.
#pragma once

#include <chrono>
#include <exception>
#include <memory>

#include "models/base/errors.h"
#include "strategies/cluster/membership.h"
#include "strategies/collective/mpi_session.h"
#include "strategies/strategy.h"
#include "worker/run/train_options.h"

namespace syncopate {

// Whether the rendezvous endpoint has to be distributed through MPI, because mpirun gives ranks but
// no endpoint.
bool meets_through_mpi(const TrainOptions& options);

// Returns the cluster with its rendezvous endpoint, which is distributed through MPI if
// meets_through_mpi().
ClusterSpec with_rendezvous(const TrainOptions& options, MpiSession* mpi);

// Joins the other tasks at the rendezvous. Returns null for a job of one task. Also returns null
// for a job with parameter servers, because the tasks of such a job register with the servers.
// Throws UsageError, PeerError.
std::unique_ptr<Membership> meet(const TrainOptions& options, MpiSession* mpi);

// Returns the peer timeout of tasks in a job with parameter servers: `given` if it is not 0;
// otherwise 5 s if all tasks are on one machine, and 15 s if they are not.
std::chrono::milliseconds served_peer_timeout(std::chrono::milliseconds given,
                                              const ClusterSpec& cluster);

// Reports the error to the other tasks and throws it. Call this function before objects of the run
// are destroyed, because their destruction may take long. peer_began: whether a peer failed first.
// If so, the function throws the error that the peer reported instead; the report may arrive a
// moment after the connection broke.
[[noreturn]] void end_job(Membership& membership, const std::exception& error, bool peer_began);

// Calls `work`. Reports an exception of `work` to the other tasks or to the servers, and throws it
// again. strategy: null while the strategy has not been made yet.
template <typename Work>
void report_failures(Membership* membership, const std::unique_ptr<Strategy>& strategy,
                     const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    if (membership != nullptr) {
      end_job(*membership, error, dynamic_cast<const PeerError*>(&error) != nullptr);
    }
    // In a job with servers, reports the failure of this worker to the servers.
    const bool ends_job = dynamic_cast<const BadSampleError*>(&error) != nullptr;
    if (strategy != nullptr) strategy->fail(error.what(), ends_job);
    throw;
  }
}

}  // namespace syncopate
