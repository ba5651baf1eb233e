#include "tests/models/backend/cuda/fake_nccl.h"

#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/models/backend/cuda/emulated_journal.h"

namespace syncopate::cuda {
namespace {

// Ranks that met under one id.
struct Group {
  std::mutex mutex;
  int size = 0;
  int joined = 0;
  std::vector<float*> slices;  // by rank; null: has not come to the sum under way
  int arrived = 0;
  int sums_done = 0;
};

struct Communicator {
  std::shared_ptr<Group> group;
  int rank = 0;
  int sums_asked = 0;
  int askings = 0;  // since all have met
  bool leaves = false;
};

Communicator& in(ncclComm_t handle) { return *reinterpret_cast<Communicator*>(handle); }

std::shared_ptr<Group> group_of(int id, int size) {
  static std::mutex mutex;
  static std::map<int, std::shared_ptr<Group>> groups;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Group>& group = groups[id];
  if (group == nullptr) {
    group = std::make_shared<Group>();
    group->size = size;
    group->slices.resize(static_cast<std::size_t>(size));
  }
  return group;
}

ncclResult_t get_unique_id(ncclUniqueId* id) {
  static std::atomic<int> last{0};
  const int made = ++last;
  std::memcpy(id->internal, &made, sizeof made);
  return ncclSuccess;
}

ncclResult_t init_rank(ncclComm_t* made, int size, ncclUniqueId id, int rank,
                       ncclConfig_t* config) {
  if (config->blocking != 0 || rank < 0 || rank >= size) return ncclInvalidArgument;
  int number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  auto* const communicator = new Communicator{.group = group_of(number, size), .rank = rank};
  const std::lock_guard lock(communicator->group->mutex);
  ++communicator->group->joined;
  note_call({.what = "init"});
  *made = reinterpret_cast<ncclComm_t>(communicator);
  return ncclInProgress;
}

ncclResult_t all_reduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t operation, ncclComm_t handle, cudaStream_t stream) {
  if (from != to || type != ncclFloat32 || operation != ncclSum) return ncclInvalidArgument;
  note_call({.what = "all-reduce", .stream = stream, .memory = to, .count = count});
  Communicator& mine = in(handle);
  Group& group = *mine.group;
  const std::lock_guard lock(group.mutex);
  ++mine.sums_asked;
  group.slices[static_cast<std::size_t>(mine.rank)] = static_cast<float*>(to);
  if (fake_nccl_trouble().sums_never_end) return ncclInProgress;
  if (++group.arrived < group.size) return ncclInProgress;
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0.0F;
    for (const float* slice : group.slices) sum += slice[i];
    for (float* slice : group.slices) slice[i] = sum;
  }
  group.arrived = 0;
  ++group.sums_done;
  return ncclSuccess;
}

ncclResult_t get_async_error(ncclComm_t handle, ncclResult_t* state) {
  Communicator& mine = in(handle);
  FakeNcclTrouble& trouble = fake_nccl_trouble();
  const std::lock_guard lock(mine.group->mutex);
  const bool all_met = mine.group->joined == mine.group->size;
  const bool meets = !all_met || mine.askings++ < trouble.askings_to_meet;
  const bool sums = mine.sums_asked > mine.group->sums_done;
  const bool leaves = mine.leaves && trouble.nobody_leaves;
  *state = trouble.async_error != ncclSuccess ? trouble.async_error.load()
           : meets || sums || leaves          ? ncclInProgress
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
  delete &in(handle);
  return ncclSuccess;
}

ncclResult_t abort(ncclComm_t handle) {
  note_call({.what = "abort"});
  delete &in(handle);
  return ncclSuccess;
}

const char* error_string(ncclResult_t code) {
  return code == ncclRemoteError ? "remote process exited" : "another error";
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
