// What the ranks of the fake NCCL share, be they threads or processes: memory without a name, which
// rank 0 makes and the others find through rank 0's process. Nothing is left of it when all are
// gone, however they went.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "models/base/file_descriptor.h"
#include "models/base/shared_memory_file.h"

namespace syncopate::cuda {

// Where a process finds the board: as long as `file` is open in the one that made it.
struct NewBoard {
  FileDescriptor file;
  std::string place;
};
// Throws FileError.
NewBoard make_fake_nccl_board();

// One rank's view. Thread-safe.
class FakeNcclBoard {
 public:
  static constexpr int kMostRanks = 16;
  static std::size_t size_bytes();

  // Null: there is none at that place, or none any more.
  static std::unique_ptr<FakeNcclBoard> open(const std::string& place, int rank, int size);
  FakeNcclBoard(const FakeNcclBoard&) = delete;
  FakeNcclBoard& operator=(const FakeNcclBoard&) = delete;
  ~FakeNcclBoard();

  // This rank is there.
  void join();
  bool all_have_joined() const;
  // `values` become their sums over all ranks, added from rank 0 on. Every rank calls with as many.
  // Waits for the others, until release(): then `values` are anything. False: not a sum.
  bool sum(float* values, std::size_t count);
  void release();
  // All is done: from now on nobody misses this rank.
  void leave();
  // Of the ranks that have joined and not left, one was released, or its process has ended.
  bool somebody_is_gone() const;

 private:
  struct Shared;

  FakeNcclBoard(SharedMapping mapping, int rank, int size);
  bool wait_until(const std::function<bool()>& is_true) const;

  const SharedMapping mapping_;
  Shared& shared_;
  const int rank_;
  const int size_;
};

}  // namespace syncopate::cuda
