#include "tests/models/backend/cuda/fake_nccl.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "models/base/errors.h"
#include "tests/models/backend/cuda/emulated_journal.h"
#include "tests/models/backend/cuda/emulated_stream.h"
#include "tests/models/backend/cuda/fake_nccl_memory.h"

namespace syncopate::cuda {
namespace {

struct Communicator {
  std::shared_ptr<FakeNcclMemory> memory;
  FileDescriptor file;  // rank 0's shared file, which the other ranks open
  int size = 1;
  int polls = 0;  // polls of this communicator since all ranks have joined
  int sums = 0;
  bool is_finalizing = false;
};

Communicator& in(ncclComm_t handle) { return *reinterpret_cast<Communicator*>(handle); }

// Maps the paths of shared files that this process has made for communicators, and that rank 0 has
// not yet opened, to their descriptors.
std::map<std::string, FileDescriptor>& unopened_files() {
  static std::map<std::string, FileDescriptor> files;
  return files;
}
std::mutex& unopened_files_mutex() {
  static std::mutex mutex;
  return mutex;
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  if (fake_nccl_faults().id_fails) return ncclSystemError;
  NewFakeNcclMemory made = make_fake_nccl_memory();
  *id = {};
  std::strncpy(id->internal, made.path.c_str(), sizeof id->internal - 1);
  const std::lock_guard lock(unopened_files_mutex());
  unopened_files()[made.path] = std::move(made.file);
  return ncclSuccess;
}

ncclResult_t init_rank(ncclComm_t* made, int size, ncclUniqueId id, int rank,
                       ncclConfig_t* config) {
  if (config->blocking != 0 || rank < 0 || rank >= size) return ncclInvalidArgument;
  if (const ncclResult_t error = fake_nccl_faults().init_error; error != ncclSuccess) return error;
  note_call({.what = "init"});
  const std::string path(id.internal);
  auto communicator = std::make_unique<Communicator>();
  communicator->memory = FakeNcclMemory::open(path, rank, size);
  communicator->size = size;
  if (communicator->memory == nullptr) return ncclSystemError;
  if (rank == 0) {
    const std::lock_guard lock(unopened_files_mutex());
    if (auto mine = unopened_files().extract(path)) communicator->file = std::move(mine.mapped());
  }
  if (!fake_nccl_faults().never_connects) communicator->memory->join();
  *made = reinterpret_cast<ncclComm_t>(communicator.release());
  return ncclInProgress;
}

ncclResult_t all_reduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, ncclComm_t handle, cudaStream_t stream) {
  if (from != to || type != ncclFloat32 || operation != ncclSum) return ncclInvalidArgument;
  note_call({.what = "all-reduce", .stream = stream, .memory = to, .count = count});
  Communicator& mine = in(handle);
  ++mine.sums;
  if (mine.size > 1) {
    add_slow_work(
        stream, [memory = mine.memory, to, count] { memory->sum(static_cast<float*>(to), count); });
  }
  return ncclInProgress;
}

ncclResult_t get_async_error(ncclComm_t handle, ncclResult_t* state) {
  Communicator& mine = in(handle);
  const FakeNcclFaults& faults = fake_nccl_faults();
  const bool all_met = mine.memory->all_have_joined();
  const bool is_connecting = !all_met || mine.polls++ < faults.polls_to_connect;
  const bool is_finalizing = mine.is_finalizing && faults.finalize_never_ends;
  const bool is_broken = faults.sums_until_error > 0 && mine.sums > faults.sums_until_error;
  *state = is_broken                                                   ? ncclInternalError
           : faults.async_error != ncclSuccess                         ? faults.async_error.load()
           : faults.reports_lost_ranks && mine.memory->has_lost_rank() ? ncclRemoteError
           : is_connecting || is_finalizing || faults.sums_never_end   ? ncclInProgress
                                                                       : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t finalize(ncclComm_t handle) {
  note_call({.what = "finalize"});
  in(handle).is_finalizing = true;
  return ncclInProgress;
}

ncclResult_t destroy(ncclComm_t handle) {
  note_call({.what = "destroy"});
  in(handle).memory->leave();
  delete &in(handle);
  return ncclSuccess;
}

ncclResult_t abort(ncclComm_t handle) {
  note_call({.what = "abort"});
  in(handle).memory->release();
  delete &in(handle);
  return ncclSuccess;
}

const char* error_string(ncclResult_t code) {
  if (code == ncclRemoteError) return "remote process exited";
  if (code == ncclInternalError) return "internal error";
  return code == ncclSystemError ? "unhandled system error" : "another error";
}
const char* last_error(ncclComm_t /*handle*/) { return "the fake was told so"; }

}  // namespace

const NcclTable& fake_nccl() {
  static constexpr NcclTable kFake{.get_unique_id = get_unique_id,
                                   .init_rank = init_rank,
                                   .all_reduce = all_reduce,
                                   .get_async_error = get_async_error,
                                   .finalize = finalize,
                                   .destroy = destroy,
                                   .abort = abort,
                                   .error_string = error_string,
                                   .last_error = last_error};
  return kFake;
}

FakeNcclFaults& fake_nccl_faults() {
  static FakeNcclFaults faults;
  return faults;
}

}  // namespace syncopate::cuda
