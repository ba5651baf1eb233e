#include "tests/models/backend/cuda/fake_nccl.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "models/base/errors.h"
#include "tests/models/backend/cuda/emulated_journal.h"
#include "tests/models/backend/cuda/emulated_stream.h"
#include "tests/models/backend/cuda/fake_nccl_board.h"

namespace syncopate::cuda {
namespace {

struct Communicator {
  std::shared_ptr<FakeNcclBoard> board;
  FileDescriptor file;  // rank 0's shared file, which the other ranks open
  int size = 1;
  int askings = 0;  // polls of this communicator since all ranks have joined
  int sums = 0;
  bool leaves = false;
};

Communicator& in(ncclComm_t handle) { return *reinterpret_cast<Communicator*>(handle); }

// Maps the paths of shared files that this process has made for communicators, and that rank 0 has
// not yet opened, to their descriptors.
std::map<std::string, FileDescriptor>& new_boards() {
  static std::map<std::string, FileDescriptor> boards;
  return boards;
}
std::mutex& new_boards_mutex() {
  static std::mutex mutex;
  return mutex;
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  if (fake_nccl_trouble().id_fails) return ncclSystemError;
  NewBoard made = make_fake_nccl_board();
  *id = {};
  std::strncpy(id->internal, made.place.c_str(), sizeof id->internal - 1);
  const std::lock_guard lock(new_boards_mutex());
  new_boards()[made.place] = std::move(made.file);
  return ncclSuccess;
}

ncclResult_t init_rank(ncclComm_t* made, int size, ncclUniqueId id, int rank,
                       ncclConfig_t* config) {
  if (config->blocking != 0 || rank < 0 || rank >= size) return ncclInvalidArgument;
  if (const ncclResult_t error = fake_nccl_trouble().init_error; error != ncclSuccess) return error;
  note_call({.what = "init"});
  const std::string place(id.internal);
  auto communicator = std::make_unique<Communicator>();
  communicator->board = FakeNcclBoard::open(place, rank, size);
  communicator->size = size;
  if (communicator->board == nullptr) return ncclSystemError;
  if (rank == 0) {
    const std::lock_guard lock(new_boards_mutex());
    if (auto mine = new_boards().extract(place)) communicator->file = std::move(mine.mapped());
  }
  if (!fake_nccl_trouble().never_meets) communicator->board->join();
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
    add_slow_work(stream,
                  [board = mine.board, to, count] { board->sum(static_cast<float*>(to), count); });
  }
  return ncclInProgress;
}

ncclResult_t get_async_error(ncclComm_t handle, ncclResult_t* state) {
  Communicator& mine = in(handle);
  const FakeNcclTrouble& trouble = fake_nccl_trouble();
  const bool all_met = mine.board->all_have_joined();
  const bool meets = !all_met || mine.askings++ < trouble.askings_to_meet;
  const bool leaves = mine.leaves && trouble.nobody_leaves;
  const bool is_broken = trouble.sums_to_break > 0 && mine.sums > trouble.sums_to_break;
  *state = is_broken                                                    ? ncclInternalError
           : trouble.async_error != ncclSuccess                         ? trouble.async_error.load()
           : trouble.notices_the_gone && mine.board->somebody_is_gone() ? ncclRemoteError
           : meets || leaves || trouble.sums_never_end                  ? ncclInProgress
                                                                        : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t finalize(ncclComm_t handle) {
  note_call({.what = "finalize"});
  in(handle).leaves = true;
  return ncclInProgress;
}

ncclResult_t destroy(ncclComm_t handle) {
  note_call({.what = "destroy"});
  in(handle).board->leave();
  delete &in(handle);
  return ncclSuccess;
}

ncclResult_t abort(ncclComm_t handle) {
  note_call({.what = "abort"});
  in(handle).board->release();
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

FakeNcclTrouble& fake_nccl_trouble() {
  static FakeNcclTrouble trouble;
  return trouble;
}

}  // namespace syncopate::cuda
