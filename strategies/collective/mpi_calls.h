// The calls of MPI that the program makes, as a table. The module libsyncopate_mpi.so fills it in
// and is the only file that is linked with MPI, so that the program starts where there is none.
#pragma once

#include <cstdint>

namespace syncopate {

// The functions with an int result return MPI's error code; 0: success. A handle stands for a
// handle of MPI, which is a pointer or a number; 0: none.
struct MpiCalls {
  using Handle = std::intptr_t;

  // Initializes MPI so that errors are returned. has_threads: whether one thread after the other
  // may call it (MPI_THREAD_SERIALIZED).
  int (*init)(bool* has_threads);
  bool (*is_initialized)();
  int (*finalize)();
  void (*abort)(int exit_code);  // ends all processes of the job
  int (*rank)();
  int (*size)();
  // Write a text that ends with 0, of at most `size` bytes.
  void (*error_text)(int code, char* text, int size);
  void (*library_version)(char* text, int size);
  int (*broadcast)(char* bytes, int size);  // from rank 0; blocks
  // Create and free a communicator of all ranks, and a reduction that adds 16-bit elements with
  // `add`.
  int (*make_communicator)(Handle* communicator);
  void (*free_communicator)(Handle communicator);
  int (*make_sum)(void (*add)(void* addend, void* into, int count), Handle* sum);
  void (*free_sum)(Handle sum);
  // Start an operation, which test() ends. sum: of 16-bit elements; 0: of f32.
  int (*start_all_reduce)(void* values, int count, Handle sum, Handle communicator,
                          Handle* request);
  int (*start_all_gather)(const void* mine, int bytes_of_each, void* all, Handle communicator,
                          Handle* request);
  int (*start_broadcast)(void* bytes, int size, int root, Handle communicator, Handle* request);
  // Sets `request` to 0 when the operation has ended.
  int (*test)(Handle* request, bool* has_ended);
};

// Loads the module from the run path of the program, or from LD_LIBRARY_PATH, and keeps it loaded
// until the process ends. Throws UnavailableError when the module or the MPI library is missing.
const MpiCalls& mpi_calls();

// The only function that the module exports, named kMpiModuleSymbol. The number changes with the
// table.
using MpiModuleEntry = const MpiCalls*();
inline constexpr const char* kMpiModuleFile = "libsyncopate_mpi.so";
inline constexpr const char* kMpiModuleSymbol = "syncopate_mpi_calls_1";

}  // namespace syncopate
