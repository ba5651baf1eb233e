// How this task comes into its job, and how the others hear of its end.
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

// mpirun says who takes part, but not where they meet: MPI is needed for that.
bool meets_through_mpi(const TrainOptions& options);

// Where this task meets the others, also where only MPI can tell.
ClusterSpec with_rendezvous(const TrainOptions& options, MpiSession* mpi);

// The tasks of the job; null where this one is alone, or meets the others at servers. Throws
// UsageError, PeerError.
std::unique_ptr<Membership> meet(const TrainOptions& options, MpiSession* mpi);

// How long tasks that meet at servers may be silent: what was said (0: nothing), else 5 s where all
// are on one machine, and 15 s elsewhere.
std::chrono::milliseconds served_peer_timeout(std::chrono::milliseconds said,
                                              const ClusterSpec& cluster);

// Ends this task's part of the job with what it threw: the others hear why before anything here is
// taken down, which may take long. Where a peer began it, its verdict is what counts, and it may
// come a moment after the connection that it broke.
[[noreturn]] void end_job(Membership& membership, const std::exception& error, bool peer_began);

// Calls `work`; what it throws ends the job. strategy: null as long as there is none.
template <typename Work>
void tell_others(Membership* membership, const std::unique_ptr<Strategy>& strategy,
                 const Work& work) {
  try {
    work();
  } catch (const PeerError& error) {
    if (membership == nullptr) {
      // Servers that are left need not find out by themselves that this worker is gone.
      if (strategy != nullptr) strategy->fail(error.what());
      throw;
    }
    end_job(*membership, error, true);
  } catch (const std::exception& error) {
    if (membership == nullptr) {
      if (strategy != nullptr) strategy->fail(error.what());
      throw;
    }
    end_job(*membership, error, false);
  }
}

}  // namespace syncopate
