// The memory is the memory that the ranks of the fake NCCL share, as threads or processes: an
// unnamed file, which rank 0 makes and the others open through rank 0's process. It disappears with
// the last process, however the processes end.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "models/base/file_descriptor.h"
#include "models/base/shared_memory_file.h"

namespace syncopate::cuda {

// A NewFakeNcclMemory is a new file of memory for the ranks to share, and the path by which a
// process opens it. The path is valid while `file` is open in the process that made it.
struct NewFakeNcclMemory {
  FileDescriptor file;
  std::string path;
};
// Makes a memory. Throws FileError.
NewFakeNcclMemory make_fake_nccl_memory();

// FakeNcclMemory is one rank's view of the memory. Thread-safe.
class FakeNcclMemory {
 public:
  static constexpr int kMostRanks = 16;
  static std::size_t size_bytes();

  // Opens the shared file at the path `path`; returns null if the path leads to no such file.
  static std::unique_ptr<FakeNcclMemory> open(const std::string& path, int rank, int size);
  FakeNcclMemory(const FakeNcclMemory&) = delete;
  FakeNcclMemory& operator=(const FakeNcclMemory&) = delete;
  ~FakeNcclMemory();

  // Announces this rank to the other ranks.
  void join();
  bool all_have_joined() const;
  // Replaces `values` by their sums over all ranks, added from rank 0 on. Every rank passes the
  // same number of values. Waits for the other ranks until release(). Returns false if the sum
  // failed; `values` are then undefined.
  bool sum(float* values, std::size_t count);
  void release();
  // Marks this rank as finished, so that its end is not reported as a loss.
  void leave();
  // Returns whether a rank is lost: it has joined and not left, but was released or its process has
  // ended.
  bool has_lost_rank() const;

 private:
  struct Shared;

  FakeNcclMemory(SharedMapping mapping, int rank, int size);
  bool wait_until(const std::function<bool()>& is_true) const;

  const SharedMapping mapping_;
  Shared& shared_;
  const int rank_;
  const int size_;
};

}  // namespace syncopate::cuda
