#include "tests/models/backend/cuda/fake_nccl_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <new>
#include <utility>

#include "models/base/deadline.h"
#include "models/base/shared_memory_file.h"

namespace syncopate::cuda {
namespace {

constexpr const char* kPurpose = "a fake NCCL";
// A sum is made in pieces of this size; all ranks write a piece before any rank adds it.
constexpr std::size_t kPieceElements = std::size_t{1} << 16;
// A rank gives up a wait after this time, which exceeds the timeout of every test.
constexpr std::chrono::minutes kMostToWait{1};
constexpr std::chrono::milliseconds kNap{5};

}  // namespace

// The memory that all ranks of a communicator share. A new file consists of zero bytes, which are
// the initial values.
struct FakeNcclMemory::Shared {
  struct Rank {
    std::atomic<std::int64_t> process;  // 0 until the rank has joined
    std::atomic<bool> is_gone;          // is set by release()
    std::atomic<bool> has_left;
    std::atomic<std::uint64_t> pieces;  // the number of pieces written so far
  };
  std::atomic<std::uint32_t> changes;  // is notified at every change
  std::array<Rank, kMostRanks> ranks;
  // Each rank has two slots, for pieces with even and with odd numbers. A rank that writes piece n
  // + 2 has seen that all ranks have written piece n + 1, so all have read piece n.
  std::array<std::array<std::array<float, kPieceElements>, kMostRanks>, 2> slots;

  void notify() {
    changes.fetch_add(1);
    futex_wake_all(changes);
  }
};

NewFakeNcclMemory make_fake_nccl_memory() {
  FileDescriptor file = make_shared_memory_file(FakeNcclMemory::size_bytes(), kPurpose);
  std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file.get());
  return {std::move(file), std::move(path)};
}

std::size_t FakeNcclMemory::size_bytes() { return sizeof(Shared); }

std::unique_ptr<FakeNcclMemory> FakeNcclMemory::open(const std::string& path, int rank, int size) {
  if (size > kMostRanks || rank < 0 || rank >= size) return nullptr;
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  struct stat found {};
  // The path contains the number of rank 0's descriptor, which another file may have by now, so the
  // test checks seal and size.
  if (!file || fstat(file.get(), &found) != 0 || !is_sealed_against_shrinking(file.get()) ||
      std::cmp_not_equal(found.st_size, sizeof(Shared))) {
    return nullptr;
  }
  return std::unique_ptr<FakeNcclMemory>(
      new FakeNcclMemory(SharedMapping(file.get(), sizeof(Shared), kPurpose), rank, size));
}

FakeNcclMemory::FakeNcclMemory(SharedMapping mapping, int rank, int size)
    : mapping_(std::move(mapping)),
      shared_(*std::launder(reinterpret_cast<Shared*>(mapping_.data()))),
      rank_(rank),
      size_(size) {}

FakeNcclMemory::~FakeNcclMemory() = default;

void FakeNcclMemory::join() {
  shared_.ranks[static_cast<std::size_t>(rank_)].process = getpid();
  shared_.notify();
}

bool FakeNcclMemory::all_have_joined() const {
  return std::all_of(shared_.ranks.begin(), shared_.ranks.begin() + size_,
                     [](const Shared::Rank& rank) { return rank.process != 0; });
}

bool FakeNcclMemory::sum(float* values, std::size_t count) {
  Shared::Rank& me = shared_.ranks[static_cast<std::size_t>(rank_)];
  for (std::size_t begin = 0; begin < count; begin += kPieceElements) {
    const std::size_t length = std::min(kPieceElements, count - begin);
    const std::uint64_t number = me.pieces + 1;
    const auto& slots = shared_.slots[number % 2];
    std::copy_n(values + begin, length,
                shared_.slots[number % 2][static_cast<std::size_t>(rank_)].begin());
    me.pieces = number;
    shared_.notify();
    const auto all_have_written = [&] {
      return std::all_of(shared_.ranks.begin(), shared_.ranks.begin() + size_,
                         [&](const Shared::Rank& rank) { return rank.pieces >= number; });
    };
    if (!wait_until(all_have_written)) return false;
    for (std::size_t i = 0; i < length; ++i) {
      float sum = slots[0][i];
      for (std::size_t r = 1; r < static_cast<std::size_t>(size_); ++r) sum += slots[r][i];
      values[begin + i] = sum;
    }
  }
  return true;
}

bool FakeNcclMemory::wait_until(const std::function<bool()>& is_true) const {
  const Deadline deadline = Deadline::after(kMostToWait);
  for (;;) {
    const std::uint32_t seen = shared_.changes;
    if (is_true()) return true;
    if (shared_.ranks[static_cast<std::size_t>(rank_)].is_gone || deadline.passed()) return false;
    futex_wait(shared_.changes, seen, kNap);
  }
}

void FakeNcclMemory::release() {
  shared_.ranks[static_cast<std::size_t>(rank_)].is_gone = true;
  shared_.notify();
}

void FakeNcclMemory::leave() { shared_.ranks[static_cast<std::size_t>(rank_)].has_left = true; }

bool FakeNcclMemory::has_lost_rank() const {
  const auto is_gone = [](const Shared::Rank& rank) {
    const auto process = static_cast<pid_t>(rank.process);
    if (process == 0 || rank.has_left) return false;
    return rank.is_gone || (kill(process, 0) != 0 && errno == ESRCH);
  };
  return std::any_of(shared_.ranks.begin(), shared_.ranks.begin() + size_, is_gone);
}

}  // namespace syncopate::cuda
