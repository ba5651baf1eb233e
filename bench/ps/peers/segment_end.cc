#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/ps/peers/ends.h"
#include "models/base/errors.h"
#include "models/tensor/buffer.h"
#include "ps/net/segment.h"

namespace syncopate::bench {
namespace {

constexpr std::chrono::seconds kSegmentTimeout(60);
constexpr const char* kNonce = "syncopate-bench";
// The size of a piece, which is still in the second-level cache when the other end copies it out.
constexpr std::size_t kLargestPiece = std::size_t{128} << 10;
// Spinning lasts about 10 us, then the thread yields, because the other end may need this core.
constexpr int kSpinsBeforeYield = 256;

// The counter of pieces written to a shared block. It lies behind the block's elements on a cache
// line of its own.
using Counter = std::atomic<std::uint32_t>;
constexpr std::size_t kCounterFloats = 64;

class SegmentEnd final : public ExchangeEnd {
 public:
  explicit SegmentEnd(RankGroup& group) : group_(group) {}

  void prepare(const ExchangeShape& shape) override {
    const std::size_t bytes = shape.bytes;
    piece_bytes_ = std::min(kLargestPiece, shape.message_bytes);
    const std::size_t elements = (bytes + kAlignmentBytes - 1) / kAlignmentBytes * kCounterFloats;
    const auto total = static_cast<std::int64_t>(elements + kCounterFloats);
    segment_ = group_.rank() == 0 ? own(total) : map(total);
    pushed_ = begin_counter(segment_.gradients, elements);
    answered_ = begin_counter(segment_.values, elements);
    done_ = 0;
    block_.assign(bytes, std::byte{0});
  }

  void exchange(std::span<const std::byte> outgoing, const Take& take) override {
    if (group_.rank() == 0) {
      push_and_pull(outgoing);
    } else {
      answer(outgoing);
    }
    take(0, block_);
  }

 private:
  ps::MappedSegment own(std::int64_t elements) {
    owner_.emplace(elements, kNonce);
    group_.share(owner_->name());
    return {.values = owner_->values(), .gradients = owner_->gradients()};
  }
  ps::MappedSegment map(std::int64_t elements) {
    auto segment =
        ps::map_segment(group_.share(""), kNonce, elements, Deadline::after(kSegmentTimeout));
    if (!segment) throw PeerError("the worker's segment is out of reach");
    ps::fill_page_tables(*segment, 0, elements);
    return *std::move(segment);
  }
  static Counter* begin_counter(const Tensor& block, std::size_t elements) {
    // Worker and server each construct the counter in shared memory with value zero. Neither counts
    // before both have passed a barrier, so the second construction loses nothing.
    return new (block.f32().data() + elements) Counter(0);
  }

  std::size_t piece_size(std::size_t at, std::size_t size) const {
    return std::min(piece_bytes_, size - at);
  }

  void push_and_pull(std::span<const std::byte> outgoing) {
    std::uint32_t piece = done_;
    for (std::size_t at = 0; at < outgoing.size(); at += piece_bytes_) {
      std::memcpy(segment_.gradients.bytes().data() + at, outgoing.data() + at,
                  piece_size(at, outgoing.size()));
      pushed_->store(++piece, std::memory_order_release);
    }
    for (std::size_t at = 0; at < outgoing.size(); at += piece_bytes_) {
      wait(*answered_, ++done_);
      std::memcpy(block_.data() + at, segment_.values.bytes().data() + at,
                  piece_size(at, outgoing.size()));
    }
  }

  void answer(std::span<const std::byte> outgoing) {
    for (std::size_t at = 0; at < outgoing.size(); at += piece_bytes_) {
      wait(*pushed_, ++done_);
      const std::size_t size = piece_size(at, outgoing.size());
      std::memcpy(block_.data() + at, segment_.gradients.bytes().data() + at, size);
      std::memcpy(segment_.values.bytes().data() + at, outgoing.data() + at, size);
      answered_->store(done_, std::memory_order_release);
    }
  }

  // Waits until the counter of pieces reaches `piece`. The counter may wrap around.
  static void wait(const Counter& counter, std::uint32_t piece) {
    std::optional<Deadline> deadline;
    for (int spins = 0;
         static_cast<std::int32_t>(counter.load(std::memory_order_acquire) - piece) < 0; ++spins) {
      if (spins < kSpinsBeforeYield) {
        __builtin_ia32_pause();
        continue;
      }
      std::this_thread::yield();
      if (!deadline) deadline = Deadline::after(kSegmentTimeout);
      if (deadline->passed()) throw PeerError("the other end of the segment is silent");
    }
  }

  RankGroup& group_;
  std::optional<ps::SegmentOwner> owner_;
  ps::MappedSegment segment_;
  Counter* pushed_ = nullptr;
  Counter* answered_ = nullptr;
  std::size_t piece_bytes_ = kLargestPiece;
  std::uint32_t done_ = 0;        // counts the pieces of all exchanges
  std::vector<std::byte> block_;  // holds the data that was copied out
};

}  // namespace

std::unique_ptr<ExchangeEnd> make_segment_end(RankGroup& group) {
  return std::make_unique<SegmentEnd>(group);
}

}  // namespace syncopate::bench
