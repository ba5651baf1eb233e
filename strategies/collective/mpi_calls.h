// The MPI functions that the program calls, as a table of function pointers. The module
// libsyncopate_mpi.so fills in the table. Only this module is linked with MPI, so the program also
// starts on machines without MPI.
#pragma once

#include <cstdint>

namespace syncopate {

// Functions with the result int return MPI's error code, 0 for success, except rank() and size(). A
// Handle holds a handle of MPI, which is a pointer or a number; 0 stands for no handle.
struct MpiCalls {
  using Handle = std::intptr_t;

  // Initializes MPI, and makes its functions return errors instead of ending the process. Sets
  // `has_threads` to whether different threads may call MPI, one at a time (MPI_THREAD_SERIALIZED).
  int (*init)(bool* has_threads);
  bool (*is_initialized)();
  int (*finalize)();
  void (*abort)(int exit_code);  // ends all processes of the job
  int (*rank)();
  int (*size)();
  // These functions write a text to `text`: at most `size` bytes, including a zero byte at the end.
  void (*error_text)(int code, char* text, int size);
  void (*library_version)(char* text, int size);
  int (*broadcast)(char* bytes, int size);  // from rank 0; blocks
  // make_communicator() and free_communicator() create and free a communicator of all ranks.
  // make_sum() and free_sum() create and free a reduction, which adds 16-bit elements with the
  // function `add`.
  int (*make_communicator)(Handle* communicator);
  void (*free_communicator)(Handle communicator);
  int (*make_sum)(void (*add)(void* addend, void* into, int count), Handle* sum);
  void (*free_sum)(Handle sum);
  // Each of these functions starts an operation and sets `request` for test(). `sum` is a reduction
  // of make_sum(), which adds 16-bit elements, or 0, which adds f32 elements.
  int (*start_all_reduce)(void* values, int count, Handle sum, Handle communicator,
                          Handle* request);
  int (*start_all_gather)(const void* mine, int bytes_of_each, void* all, Handle communicator,
                          Handle* request);
  int (*start_broadcast)(void* bytes, int size, int root, Handle communicator, Handle* request);
  // Sets `has_ended` to whether the operation of `request` has ended. Sets `request` of an ended
  // operation to 0.
  int (*test)(Handle* request, bool* has_ended);
};

// Loads the module from the run path of the program, or from LD_LIBRARY_PATH, and keeps it loaded
// until the process ends. Throws UnavailableError if the module or the MPI library is missing.
const MpiCalls& mpi_calls();

// The only function that the module exports; its name is kMpiModuleSymbol. The number in the name
// is increased when the table changes.
using MpiModuleEntry = const MpiCalls*();
inline constexpr const char* kMpiModuleFile = "libsyncopate_mpi.so";
inline constexpr const char* kMpiModuleSymbol = "syncopate_mpi_calls_1";

}  // namespace syncopate
