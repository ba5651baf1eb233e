#include "models/backend/cuda/nccl_table.h"

namespace syncopate::cuda {

const NcclTable& nccl_library() {
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

}  // namespace syncopate::cuda
