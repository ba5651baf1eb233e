// NCCL's functions for replicas that are threads or processes of one machine, on the CPU's memory:
// calls stay in progress for a while, as where nobody blocks, and a sum waits on its stream for the
// other ranks, as NCCL's kernels do, until its communicator is aborted. Sums are added from rank 0
// on. Calls are noted in the emulated journal.
#pragma once

#include <atomic>

#include "models/backend/cuda/nccl_table.h"

namespace syncopate::cuda {

const NcclTable& fake_nccl();

// What goes wrong, in every communicator of this process; a test sets it back.
struct FakeNcclTrouble {
  std::atomic<bool> id_fails{false};                  // get_unique_id() fails
  std::atomic<ncclResult_t> init_error{ncclSuccess};  // what init_rank() comes back with
  std::atomic<bool> never_meets{false};  // init_rank() stays in progress, here and hence everywhere
  std::atomic<int> askings_to_meet{0};   // that say "in progress", after all have come
  std::atomic<ncclResult_t> async_error{ncclSuccess};  // what whoever asks is told
  std::atomic<int> sums_to_break{0};                   // after so many: an internal error; 0: never
  std::atomic<bool> notices_the_gone{false};  // a rank that is gone is a remote error, as where
                                              // ranks are joined by sockets
  std::atomic<bool> sums_never_end{false};    // all_reduce() stays in progress
  std::atomic<bool> nobody_leaves{false};     // finalize() stays in progress
};
FakeNcclTrouble& fake_nccl_trouble();

}  // namespace syncopate::cuda
