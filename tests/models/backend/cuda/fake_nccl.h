// NCCL's functions for replicas that are threads of one process, on the CPU's memory: sums are made
// when the last rank has come, until then a call is in progress, as it is where nobody blocks.
// Calls are noted in the emulated journal.
#pragma once

#include <atomic>

#include "models/backend/cuda/nccl_table.h"

namespace syncopate::cuda {

const NcclTable& fake_nccl();

// What goes wrong, in every communicator; a test sets it back.
struct FakeNcclTrouble {
  std::atomic<int> askings_to_meet{0};  // that say "in progress", after all have come
  std::atomic<ncclResult_t> async_error{ncclSuccess};  // what whoever asks is told
  std::atomic<bool> sums_never_end{false};
  std::atomic<bool> nobody_leaves{false};  // finalize() stays in progress
};
FakeNcclTrouble& fake_nccl_trouble();

}  // namespace syncopate::cuda
