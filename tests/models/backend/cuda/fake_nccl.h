// Provides NCCL's functions for replicas that are threads or processes of one machine, on the CPU's
// memory. Calls stay in progress for a while, as on a non-blocking communicator, and a sum waits on
// its stream for the other ranks, as NCCL's kernels do, until its communicator is aborted. Sums are
// added from rank 0 on. The emulated journal records the calls.
#pragma once

#include <atomic>

#include "models/backend/cuda/nccl_sums.h"

namespace syncopate::cuda {

const NcclTable& fake_nccl();

// FakeNcclFaults injects faults into every communicator of this process; a test resets it.
struct FakeNcclFaults {
  std::atomic<bool> id_fails{false};                  // makes get_unique_id() fail
  std::atomic<ncclResult_t> init_error{ncclSuccess};  // is the result of init_rank()
  std::atomic<bool> never_connects{false};  // init_rank() stays in progress, so on all ranks
  // The number of polls that return "in progress" after all ranks have called init_rank().
  std::atomic<int> polls_to_connect{0};
  std::atomic<ncclResult_t> async_error{ncclSuccess};  // is what polling returns
  std::atomic<int> sums_until_error{0};                // sums before an internal error; 0: no error
  std::atomic<bool> reports_lost_ranks{false};         // polls report a lost rank: ncclRemoteError
  std::atomic<bool> sums_never_end{false};             // all_reduce() stays in progress
  std::atomic<bool> finalize_never_ends{false};        // finalize() stays in progress
};
FakeNcclFaults& fake_nccl_faults();

}  // namespace syncopate::cuda
