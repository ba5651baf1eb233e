// The BucketSums of replicas that have one GPU each, by NCCL. The communicator is non-blocking:
// calls in progress are polled until a deadline. While the replica's thread waits for the device, a
// watch thread looks for errors and for sums that miss their deadline. After an error, a missed
// deadline or abort(), the communicator is aborted. Its kernels then end, so every wait ends, and
// check() throws the reason. Source: NVIDIA NCCL user guide, "Fault tolerance".
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <memory>

#include "models/backend/cuda/bucket_sums.h"

namespace syncopate::cuda {

// A table of the NCCL functions that the sums call, which tests can replace. The functions have the
// signatures and the meaning that NCCL defines. Source: NVIDIA NCCL user guide, "API", for 2.18 and
// newer.
struct NcclTable {
  ncclResult_t (*get_unique_id)(ncclUniqueId* id) = nullptr;
  ncclResult_t (*init_rank)(ncclComm_t* made, int size, ncclUniqueId id, int rank,
                            ncclConfig_t* config) = nullptr;
  ncclResult_t (*all_reduce)(const void* from, void* to, size_t count, ncclDataType_t type,
                             ncclRedOp_t operation, ncclComm_t communicator,
                             cudaStream_t stream) = nullptr;
  ncclResult_t (*get_async_error)(ncclComm_t communicator, ncclResult_t* state) = nullptr;
  ncclResult_t (*finalize)(ncclComm_t communicator) = nullptr;
  ncclResult_t (*destroy)(ncclComm_t communicator) = nullptr;
  ncclResult_t (*abort)(ncclComm_t communicator) = nullptr;
  const char* (*error_string)(ncclResult_t code) = nullptr;
  // Returns a text about the last error of an NCCL communicator.
  const char* (*last_error)(ncclComm_t communicator) = nullptr;
};

// Returns the table with the functions of libnccl. Inline, so that a program that does not call
// nccl_library() need not link NCCL.
inline const NcclTable& nccl_library() {
  static constexpr NcclTable kLibrary{.get_unique_id = ncclGetUniqueId,
                                      .init_rank = ncclCommInitRankConfig,
                                      .all_reduce = ncclAllReduce,
                                      .get_async_error = ncclCommGetAsyncError,
                                      .finalize = ncclCommFinalize,
                                      .destroy = ncclCommDestroy,
                                      .abort = ncclCommAbort,
                                      .error_string = ncclGetErrorString,
                                      .last_error = ncclGetLastError};
  return kLibrary;
}

// Makes the BucketSums of one rank. nccl: the NCCL functions to call; the table must outlive the
// BucketSums. The watch thread notices errors and abort() within watch_interval, unless the
// replica's thread notices them first. Throws DeviceError.
std::unique_ptr<BucketSums> make_nccl_sums(
    const DeviceRank& rank, const NcclTable& nccl,
    std::chrono::milliseconds watch_interval = std::chrono::milliseconds(100));

}  // namespace syncopate::cuda
