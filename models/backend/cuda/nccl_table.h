// The functions of NCCL that the backend calls, as a table, so that tests can replace them.
// Signatures and meaning are NCCL's. Source: NVIDIA NCCL user guide, "API", for 2.18 and newer.
#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace syncopate::cuda {

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
  // Returns the text of an NCCL communicator's last error.
  const char* (*last_error)(ncclComm_t communicator) = nullptr;
};

// Returns the table of the functions of libnccl.
const NcclTable& nccl_library();

}  // namespace syncopate::cuda
