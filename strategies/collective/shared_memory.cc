#include "strategies/collective/shared_memory.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/tensor/sums.h"
#include "strategies/collective/stopwatch.h"

namespace syncopate {
namespace {

// A piece: small enough that every rank gets some, large enough that taking one costs nothing and
// that memory is read in long runs.
constexpr std::int64_t kMostPieceElements = 8 * kBlockElements;
constexpr std::int64_t kLeastPieceElements = 1024;

// Pieces lie on multiples of this in the arena: parts of a block, or whole blocks.
std::int64_t piece_elements(std::int64_t length, int num_ranks) {
  std::int64_t size = kMostPieceElements;
  while (size > kLeastPieceElements && length / size < std::int64_t{4} * num_ranks) size /= 2;
  return size;
}

std::int64_t floor_multiple(std::int64_t value, std::int64_t factor) {
  const std::int64_t rest = value % factor;
  return value - (rest < 0 ? rest + factor : rest);
}

class SharedMemoryCollective final : public Collective {
 public:
  SharedMemoryCollective(std::shared_ptr<SharedRanks> ranks, int rank,
                         std::chrono::nanoseconds patience)
      : ranks_(std::move(ranks)),
        sums_(sum_kernels(detect_isa())),
        block_(ranks_->blocks[static_cast<std::size_t>(rank)]),
        hand_(*ranks_->board, rank, patience,
              [this](std::uint64_t job, std::int64_t piece) { add_piece(job, piece); }) {
    for (const Tensor& block : ranks_->blocks) {
      f32_.push_back(block.f32().data());
      bf16_.push_back(reinterpret_cast<std::uint16_t*>(block.bytes().data()));
    }
  }

  int rank() const noexcept override { return hand_.rank(); }
  int size() const noexcept override { return hand_.num_ranks(); }
  const Tensor& block() const noexcept override { return block_; }

  WorkId all_reduce(const Tensor& tensor, std::int64_t index) override {
    if (ranks_->board->is_aborted()) ranks_->board->throw_aborted();
    if (size() == 1 || tensor.num_elements() == 0) return kDone;
    const std::span<std::byte> bytes = tensor.bytes();
    const std::span<std::byte> own = block_.bytes();
    if (bytes.data() < own.data() || bytes.data() + bytes.size() > own.data() + own.size()) {
      const Stopwatch::Blocking blocking(watch_);
      reduce_through_board(tensor, index);
      return kDone;
    }
    const Stopwatch::Exposed exposed(watch_);
    const auto element = static_cast<std::int64_t>(size_bytes(tensor.dtype()));
    const Operation operation{.dtype = tensor.dtype(),
                              .offset = (bytes.data() - own.data()) / element,
                              .index = index,
                              .length = tensor.num_elements(),
                              .piece = piece_elements(tensor.num_elements(), size())};
    const std::int64_t first = floor_multiple(index, operation.piece);
    const std::int64_t pieces =
        (index + operation.length - first + operation.piece - 1) / operation.piece;
    // Before its place is taken over: pieces of the job that had it may still be to do.
    if (num_operations_ >= operations_.size()) {
      hand_.wait(num_operations_ - operations_.size(), "an earlier all-reduce");
    }
    // The number that post() will give: its own pieces may be taken before it returns.
    operations_[num_operations_ % operations_.size()] = operation;
    watch_.begin();
    const std::uint64_t job = hand_.post(pieces);
    check(job == num_operations_, "jobs and operations are counted alike");
    ++num_operations_;
    return job + 1;
  }

  void wait(WorkId work) override {
    if (work == kDone || num_waited_ >= work) return;
    const Stopwatch::Exposed exposed(watch_);
    hand_.wait(work - 1, "the all-reduce of its gradients");
    num_waited_ = work;
    if (num_waited_ == num_operations_) watch_.end();
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (ranks_->board->is_aborted()) ranks_->board->throw_aborted();
    if (size() == 1) {
      std::ranges::copy(mine, all.begin());
      return;
    }
    const Stopwatch::Blocking blocking(watch_);
    hand_.exchange(mine, all, "an all-gather");
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    if (size() > 1) hand_.broadcast(bytes, root);
  }

  void abort(std::string_view reason) noexcept override { ranks_->board->abort(reason); }
  CommunicationTimes times() const noexcept override { return watch_.times(); }

 private:
  static constexpr WorkId kDone = 0;

  struct Operation {
    DType dtype = DType::kF32;
    std::int64_t offset = 0;  // in every rank's block, in elements of this type
    std::int64_t index = 0;
    std::int64_t length = 0;
    std::int64_t piece = 0;
  };

  void add_piece(std::uint64_t job, std::int64_t piece) {
    const Operation& operation = operations_[job % operations_.size()];
    const std::int64_t first = floor_multiple(operation.index, operation.piece);
    const std::int64_t begin =
        std::max(first + piece * operation.piece, operation.index) - operation.index;
    const std::int64_t end =
        std::min(first + (piece + 1) * operation.piece - operation.index, operation.length);
    for (std::int64_t from = begin; from < end;) {
      const std::int64_t block_end =
          floor_multiple(operation.index + from, kBlockElements) + kBlockElements - operation.index;
      const std::int64_t to = std::min(block_end, end);
      const int first_rank = first_addend(operation.index + from, size());
      if (operation.dtype == DType::kF32) {
        sums_.sum_to_all_f32(f32_.data(), size(), first_rank, operation.offset + from, to - from);
      } else {
        sums_.sum_to_all_bf16(bf16_.data(), size(), first_rank, operation.offset + from, to - from);
      }
      from = to;
    }
  }

  // For tensors of the caller's own: everybody's part is laid open, and each adds all of them.
  void reduce_through_board(const Tensor& tensor, std::int64_t index) {
    const std::size_t element = size_bytes(tensor.dtype());
    const auto n = static_cast<std::size_t>(size());
    const auto most = static_cast<std::int64_t>(kMostGatheredBytes / element);
    for (std::int64_t begin = 0; begin < tensor.num_elements();) {
      const std::int64_t block_end =
          floor_multiple(index + begin, kBlockElements) + kBlockElements - index;
      const std::int64_t end = std::min({begin + most, block_end, tensor.num_elements()});
      const std::span<std::byte> part =
          tensor.bytes().subspan(static_cast<std::size_t>(begin) * element,
                                 static_cast<std::size_t>(end - begin) * element);
      gathered_.resize(n * part.size());
      hand_.exchange(part, gathered_, "an all-reduce");
      for (std::size_t k = 0; k < n; ++k) {
        const std::size_t r =
            (static_cast<std::size_t>(first_addend(index + begin, size())) + k) % n;
        std::byte* addend = gathered_.data() + r * part.size();
        if (k == 0) {
          std::copy_n(addend, part.size(), part.begin());
        } else if (tensor.dtype() == DType::kF32) {
          sums_.add_f32(reinterpret_cast<float*>(part.data()),
                        reinterpret_cast<const float*>(addend), end - begin);
        } else {
          sums_.add_bf16(reinterpret_cast<std::uint16_t*>(part.data()),
                         reinterpret_cast<const std::uint16_t*>(addend), end - begin);
        }
      }
      begin = end;
    }
  }

  std::shared_ptr<SharedRanks> ranks_;
  const SumKernels& sums_;
  Tensor block_;
  std::vector<float*> f32_;  // where every rank's block begins
  std::vector<std::uint16_t*> bf16_;
  std::array<Operation, WorkBoard::kMostJobsUnderWay> operations_{};
  std::uint64_t num_operations_ = 0;
  std::uint64_t num_waited_ = 0;
  std::vector<std::byte> gathered_;
  Stopwatch watch_;
  BoardRank hand_;
};

}  // namespace

std::unique_ptr<Collective> make_shared_memory_collective(std::shared_ptr<SharedRanks> ranks,
                                                          int rank,
                                                          std::chrono::nanoseconds patience) {
  return std::make_unique<SharedMemoryCollective>(std::move(ranks), rank, patience);
}

}  // namespace syncopate
