// The collectives of ranks that share memory: all of them map the gradient blocks of all. `local`
// joins threads of one process, and `ring` with tasks of one host joins processes through a shared
// segment. Each rank adds pieces directly from the blocks of all ranks and stores the sums to all
// blocks, so nothing is copied in between. The order of additions is the ring's (collective.h).
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/tensor/sums.h"
#include "strategies/collective/collectives.h"
#include "strategies/collective/shared_segment.h"
#include "strategies/collective/work_progress.h"
#include "strategies/collective/work_queue.h"

namespace syncopate {
namespace {

// A piece of an all-reduce is small enough that every rank gets several, and large enough that
// claiming it costs little and that memory is read in long runs.
constexpr std::int64_t kMaxPieceElements = 8 * kBlockElements;
constexpr std::int64_t kMinPieceElements = 1024;

// Returns the number of elements in a piece of an all-reduce. Pieces begin at multiples of it in
// the arena: each is a part of one block of kBlockElements elements, or consists of whole blocks.
std::int64_t piece_elements(std::int64_t length, int num_ranks) {
  std::int64_t size = kMaxPieceElements;
  while (size > kMinPieceElements && length / size < std::int64_t{4} * num_ranks) size /= 2;
  return size;
}

std::int64_t floor_multiple(std::int64_t value, std::int64_t factor) {
  const std::int64_t rest = value % factor;
  return value - (rest < 0 ? rest + factor : rest);
}

// The memory that the ranks share, as this process sees it.
struct SharedRanks {
  std::shared_ptr<Buffer> memory;  // holds the queue; a mapped segment also holds the blocks
  std::unique_ptr<WorkQueue> queue;
  std::vector<Tensor> blocks;  // gradient block of every rank, [elements] f32
};

class SharedMemoryCollective final : public Collective {
 public:
  SharedMemoryCollective(std::shared_ptr<SharedRanks> ranks, int rank,
                         const CollectiveOptions& options)
      : ranks_(std::move(ranks)),
        sums_(sum_kernels(detect_isa())),
        block_(ranks_->blocks[static_cast<std::size_t>(rank)]),
        queue_(*ranks_->queue, rank, options.timeout, options.progress,
               [this](std::uint64_t job, std::int64_t piece) { add_piece(job, piece); }) {
    for (const Tensor& block : ranks_->blocks) {
      f32_.push_back(block.f32().data());
      bf16_.push_back(reinterpret_cast<std::uint16_t*>(block.bytes().data()));
    }
  }

  int rank() const noexcept override { return queue_.rank(); }
  int size() const noexcept override { return queue_.num_ranks(); }
  const Tensor& block() const noexcept override { return block_; }

  WorkId all_reduce(const Tensor& tensor, std::int64_t index) override {
    if (ranks_->queue->is_aborted()) ranks_->queue->throw_aborted();
    if (size() == 1 || tensor.num_elements() == 0) return kDone;
    const std::span<std::byte> bytes = tensor.bytes();
    const std::span<std::byte> own = block_.bytes();
    if (bytes.data() < own.data() || bytes.data() + bytes.size() > own.data() + own.size()) {
      const Stopwatch::Blocking blocking(watch_);
      reduce_by_copying(tensor, index);
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
    // Waits for the all-reduce that used this slot of operations_ before, if it has not ended.
    if (num_operations_ >= operations_.size()) {
      queue_.wait(num_operations_ - operations_.size(), "an earlier all-reduce");
    }
    // The slot's index follows from the job number that post() will return. The slot is filled
    // before the call, because post() may already execute pieces of this job.
    operations_[num_operations_ % operations_.size()] = operation;
    watch_.begin();
    const std::uint64_t job = queue_.post(pieces);
    check(job == num_operations_, "jobs and operations are counted alike");
    ++num_operations_;
    return job + 1;
  }

  void wait(WorkId work) override {
    if (work == kDone || num_waited_ >= work) return;
    const Stopwatch::Exposed exposed(watch_);
    queue_.wait(work - 1, "the all-reduce of its gradients");
    num_waited_ = work;
    if (num_waited_ == num_operations_) watch_.end();
  }

  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (ranks_->queue->is_aborted()) ranks_->queue->throw_aborted();
    if (size() == 1) {
      std::ranges::copy(mine, all.begin());
      return;
    }
    const Stopwatch::Blocking blocking(watch_);
    queue_.all_gather(mine, all, "an all-gather");
  }

  void broadcast(std::span<std::byte> bytes, int root) override {
    if (size() > 1) queue_.broadcast(bytes, root);
  }

  void abort(std::string_view reason) noexcept override { ranks_->queue->abort(reason); }
  CommunicationTimes times() const noexcept override { return watch_.times(); }

 private:
  static constexpr WorkId kDone = 0;

  struct Operation {
    DType dtype = DType::kF32;
    std::int64_t offset = 0;  // in every rank's block, in elements of this type
    std::int64_t index = 0;   // arena index of the tensor's first element
    std::int64_t length = 0;
    std::int64_t piece = 0;  // elements in each piece
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

  // Sums a tensor outside of the rank's block: the ranks gather each other's elements part by part,
  // and each rank adds all of them.
  void reduce_by_copying(const Tensor& tensor, std::int64_t index) {
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
      queue_.all_gather(part, gathered_, "an all-reduce");
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
  std::vector<float*> f32_;  // first element of every rank's block
  std::vector<std::uint16_t*> bf16_;
  std::array<Operation, WorkQueue::kMaxJobs> operations_{};
  std::uint64_t num_operations_ = 0;
  std::uint64_t num_waited_ = 0;
  std::vector<std::byte> gathered_;
  Stopwatch watch_;
  WorkQueueRank queue_;
};

std::vector<std::unique_ptr<Collective>> make_ranks(const std::shared_ptr<SharedRanks>& shared,
                                                    int first_rank, int num_ranks,
                                                    const CollectiveOptions& options) {
  std::vector<std::unique_ptr<Collective>> ranks;
  ranks.reserve(static_cast<std::size_t>(num_ranks));
  for (int r = first_rank; r < first_rank + num_ranks; ++r) {
    ranks.push_back(std::make_unique<SharedMemoryCollective>(shared, r, options));
  }
  return ranks;
}

}  // namespace

std::vector<std::unique_ptr<Collective>> make_local_collectives(const CollectiveOptions& options) {
  if (options.membership != nullptr && options.membership->members().size() > 1) {
    throw UsageError(
        "--collective local joins the replicas of one task, and this job has several; choose ring "
        "or mpi");
  }
  const int n = options.num_local_ranks;
  const auto shared = std::make_shared<SharedRanks>();
  shared->memory = make_host_buffer(WorkQueue::size_bytes(n));
  shared->queue = std::make_unique<WorkQueue>(shared->memory->data(), n);
  shared->blocks.reserve(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) {
    shared->blocks.push_back(make_host_tensor({options.block_elements}, DType::kF32));
  }
  return make_ranks(shared, 0, n, options);
}

std::vector<std::unique_ptr<Collective>> make_shared_memory_collectives(
    const CollectiveOptions& options) {
  const std::vector<Member>& members = options.membership->members();
  const Member& me = members[static_cast<std::size_t>(options.membership->index())];
  const int num_ranks = members.back().first_replica + members.back().num_replicas;
  const std::vector<std::int64_t> block_elements(static_cast<std::size_t>(num_ranks),
                                                 options.block_elements);
  auto segment = share_segment(*options.membership, WorkQueue::size_bytes(num_ranks),
                               block_elements, options.timeout);
  if (segment == nullptr) return {};
  const auto shared = std::make_shared<SharedRanks>();
  shared->queue = std::make_unique<WorkQueue>(segment->memory->data(), num_ranks);
  shared->memory = std::move(segment->memory);
  shared->blocks = std::move(segment->blocks);
  return make_ranks(shared, me.first_replica, me.num_replicas, options);
}

}  // namespace syncopate
