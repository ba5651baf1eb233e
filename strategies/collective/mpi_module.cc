// libsyncopate_mpi.so: MPI's functions as the table of mpi_calls.h.
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "strategies/collective/mpi_calls.h"

namespace syncopate {
namespace {

using Handle = MpiCalls::Handle;

// Handles are pointers in Open MPI and numbers in MPICH.
template <typename Object>
Handle handle_of(Object object) {
  if constexpr (std::is_pointer_v<Object>) {
    return reinterpret_cast<Handle>(object);
  } else {
    return static_cast<Handle>(object);
  }
}
template <typename Object>
Object object_of(Handle handle) {
  if constexpr (std::is_pointer_v<Object>) {
    return reinterpret_cast<Object>(handle);
  } else {
    return static_cast<Object>(handle);
  }
}

void copy_text(std::string_view from, char* text, int size) {
  const std::size_t length = std::min(from.size(), static_cast<std::size_t>(size - 1));
  std::memcpy(text, from.data(), length);
  text[length] = '\0';
}

int init(bool* has_threads) {
  int provided = MPI_THREAD_SINGLE;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  *has_threads = provided >= MPI_THREAD_SERIALIZED;
  if (code == MPI_SUCCESS) MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  return code;
}

bool is_initialized() {
  int initialized = 0;
  MPI_Initialized(&initialized);
  return initialized != 0;
}

int rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

int size() {
  int value = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &value);
  return value;
}

void error_text(int code, char* text, int size) {
  char own[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, own, &length);
  copy_text(own, text, size);
}

void library_version(char* text, int size) {
  char own[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(own, &length);
  copy_text(own, text, size);
}

int broadcast(char* bytes, int size) { return MPI_Bcast(bytes, size, MPI_CHAR, 0, MPI_COMM_WORLD); }

int make_communicator(Handle* communicator) {
  MPI_Comm made = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(MPI_COMM_WORLD, &made);
  *communicator = handle_of(made);
  return code;
}

void free_communicator(Handle communicator) {
  auto object = object_of<MPI_Comm>(communicator);
  MPI_Comm_free(&object);
}

// There is one function that adds, the same for all sums.
void (*add_elements)(void* addend, void* into, int count) = nullptr;
void call_add(void* addend, void* into, int* count, MPI_Datatype* /*type*/) {
  add_elements(addend, into, *count);
}

int make_sum(void (*add)(void* addend, void* into, int count), Handle* sum) {
  add_elements = add;
  MPI_Op made = MPI_OP_NULL;
  const int code = MPI_Op_create(call_add, 1, &made);
  *sum = handle_of(made);
  return code;
}

void free_sum(Handle sum) {
  auto object = object_of<MPI_Op>(sum);
  MPI_Op_free(&object);
}

int start_all_reduce(void* values, int count, Handle sum, Handle communicator, Handle* request) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = MPI_Iallreduce(MPI_IN_PLACE, values, count, sum == 0 ? MPI_FLOAT : MPI_UINT16_T,
                                  sum == 0 ? MPI_SUM : object_of<MPI_Op>(sum),
                                  object_of<MPI_Comm>(communicator), &made);
  *request = handle_of(made);
  return code;
}

int start_all_gather(const void* mine, int bytes_of_each, void* all, Handle communicator,
                     Handle* request) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code = MPI_Iallgather(mine, bytes_of_each, MPI_BYTE, all, bytes_of_each, MPI_BYTE,
                                  object_of<MPI_Comm>(communicator), &made);
  *request = handle_of(made);
  return code;
}

int start_broadcast(void* bytes, int size, int root, Handle communicator, Handle* request) {
  MPI_Request made = MPI_REQUEST_NULL;
  const int code =
      MPI_Ibcast(bytes, size, MPI_BYTE, root, object_of<MPI_Comm>(communicator), &made);
  *request = handle_of(made);
  return code;
}

int test(Handle* request, bool* has_ended) {
  auto object = object_of<MPI_Request>(*request);
  int done = 0;
  const int code = MPI_Test(&object, &done, MPI_STATUS_IGNORE);
  *has_ended = done != 0;
  *request = done != 0 ? 0 : handle_of(object);
  return code;
}

}  // namespace
}  // namespace syncopate

extern "C" __attribute__((visibility("default"))) const syncopate::MpiCalls*
syncopate_mpi_calls_1() {
  using namespace syncopate;
  static const MpiCalls calls = {.init = init,
                                 .is_initialized = is_initialized,
                                 .finalize = MPI_Finalize,
                                 .abort = [](int code) { MPI_Abort(MPI_COMM_WORLD, code); },
                                 .rank = rank,
                                 .size = size,
                                 .error_text = error_text,
                                 .library_version = library_version,
                                 .broadcast = broadcast,
                                 .make_communicator = make_communicator,
                                 .free_communicator = free_communicator,
                                 .make_sum = make_sum,
                                 .free_sum = free_sum,
                                 .start_all_reduce = start_all_reduce,
                                 .start_all_gather = start_all_gather,
                                 .start_broadcast = start_broadcast,
                                 .test = test};
  return &calls;
}
