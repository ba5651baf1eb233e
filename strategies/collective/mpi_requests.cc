#include "strategies/collective/mpi_requests.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <string>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/base/unique_handle.h"
#include "models/tensor/sums.h"

namespace syncopate {
namespace {

constexpr std::uint64_t kMostRequests = 8;
// One request: a larger one holds up what comes after it, a smaller one costs a start each.
constexpr std::size_t kChunkBytes = std::size_t{4} << 20;

struct CommunicatorTraits {
  using Type = MPI_Comm;
  static Type none() noexcept { return MPI_COMM_NULL; }
  static void close(Type communicator) noexcept { MPI_Comm_free(&communicator); }
};
using Communicator = UniqueHandle<CommunicatorTraits>;

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw PeerError(std::string(call) + ": " + text.data() +
                  "; did another rank die? see the other tasks' last lines");
}

void add_bf16(void* addend, void* into, int* count, MPI_Datatype* /*type*/) {
  sum_kernels(detect_isa())
      .add_bf16(static_cast<std::uint16_t*>(into), static_cast<const std::uint16_t*>(addend),
                *count);
}

Communicator duplicate_world() {
  MPI_Comm communicator = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator), "MPI_Comm_dup");
  return Communicator(communicator);
}

struct Request {
  MPI_Request request = MPI_REQUEST_NULL;
  bool ends_sum = false;
};

}  // namespace

struct MpiRequests::State {
  Communicator for_sums = duplicate_world();
  Communicator for_smalls = duplicate_world();
  MPI_Op add_bf16 = MPI_OP_NULL;
  std::array<Request, kMostRequests> requests;  // oldest .. newest - 1 are under way
  std::uint64_t oldest = 0;
  std::uint64_t newest = 0;
  std::size_t started_bytes = 0;  // of the sum that is being started
  MPI_Request small = MPI_REQUEST_NULL;
  std::uint64_t completed_smalls = 0;
};

MpiRequests::MpiRequests() : state_(std::make_unique<State>()) {
  check_mpi(MPI_Op_create(add_bf16, 1, &state_->add_bf16), "MPI_Op_create");
}

MpiRequests::~MpiRequests() {
  if (idle()) {
    MPI_Op_free(&state_->add_bf16);
    return;
  }
  // After a failure requests may never complete, and to free what they use could wait for ever:
  // it is left to MPI_Abort.
  (void)state_->for_sums.release();
  (void)state_->for_smalls.release();
}

bool MpiRequests::start_chunk(const Tensor& tensor) {
  const std::size_t size = tensor.bytes().size();
  // An empty sum is one empty chunk.
  const std::size_t bytes = std::min(kChunkBytes, size - state_->started_bytes);
  const bool is_f32 = tensor.dtype() == DType::kF32;
  Request& next = state_->requests[state_->newest % kMostRequests];
  check_mpi(MPI_Iallreduce(MPI_IN_PLACE, tensor.bytes().data() + state_->started_bytes,
                           static_cast<int>(bytes / size_bytes(tensor.dtype())),
                           is_f32 ? MPI_FLOAT : MPI_UINT16_T, is_f32 ? MPI_SUM : state_->add_bf16,
                           state_->for_sums.get(), &next.request),
            "MPI_Iallreduce");
  ++state_->newest;
  state_->started_bytes += bytes;
  next.ends_sum = state_->started_bytes == size;
  if (next.ends_sum) state_->started_bytes = 0;
  return next.ends_sum;
}

int MpiRequests::test_sums() {
  int ended = 0;
  for (; state_->oldest < state_->newest; ++state_->oldest) {
    Request& next = state_->requests[state_->oldest % kMostRequests];
    int done = 0;
    check_mpi(MPI_Test(&next.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done == 0) break;
    if (next.ends_sum) ++ended;
  }
  return ended;
}

void MpiRequests::start_small(const SmallOperation& operation) {
  const auto all = static_cast<int>(operation.bytes.size());
  const auto each = static_cast<int>(operation.mine.size());
  if (operation.root < 0) {
    check_mpi(MPI_Iallgather(operation.mine.data(), each, MPI_BYTE, operation.bytes.data(), each,
                             MPI_BYTE, state_->for_smalls.get(), &state_->small),
              "MPI_Iallgather");
  } else {
    check_mpi(MPI_Ibcast(operation.bytes.data(), all, MPI_BYTE, operation.root,
                         state_->for_smalls.get(), &state_->small),
              "MPI_Ibcast");
  }
}

bool MpiRequests::test_small() {
  int done = 0;
  check_mpi(MPI_Test(&state_->small, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done == 0) return false;
  ++state_->completed_smalls;
  return true;
}

bool MpiRequests::has_room() const noexcept {
  return state_->newest - state_->oldest < kMostRequests;
}

std::uint64_t MpiRequests::completed() const noexcept {
  return state_->oldest + state_->completed_smalls;
}

bool MpiRequests::idle() const noexcept {
  return state_->oldest == state_->newest && state_->small == MPI_REQUEST_NULL;
}

}  // namespace syncopate
