#include "worker/input/batch_source.h"

#include <chrono>
#include <utility>
#include <vector>

#include "worker/input/batch_reader.h"
#include "worker/input/batch_ring.h"

namespace syncopate {
namespace {

// Slots that the consumer holds: two batches (BatchSource::next).
constexpr int kHeldByConsumer = 2;

class PrefetchedBatchSource final : public BatchSource {
 public:
  PrefetchedBatchSource(const Dataset& dataset, const InputOptions& options, ps::DataPosition start)
      : reader_(dataset, options, std::move(start)),
        slots_(make_slots(reader_, options)),
        ring_({.slots = slots_.size(), .threads = options.threads, .trace = options.trace},
              {.fill = [this](std::int64_t sequence, std::size_t slot) {
                reader_.fill(sequence, slots_[slot]);
              }}) {}

  const Batch& next() override {
    const std::size_t slot = ring_.take();
    ++taken_;
    return slots_[slot].batch;
  }
  ps::DataPosition position() const override { return reader_.plan().batch(taken_).position; }
  std::int64_t batches_per_epoch() const override { return reader_.plan().batches_per_epoch(); }
  InputCounters counters() const override {
    return {std::chrono::duration<double>(ring_.waited()).count(), taken_};
  }

 private:
  static std::vector<BatchSlot> make_slots(const BatchReader& reader, const InputOptions& options) {
    std::vector<BatchSlot> slots;
    slots.reserve(static_cast<std::size_t>(options.prefetch) + kHeldByConsumer);
    for (int i = 0; i < options.prefetch + kHeldByConsumer; ++i)
      slots.push_back(reader.make_slot());
    return slots;
  }

  BatchReader reader_;
  std::vector<BatchSlot> slots_;
  std::int64_t taken_ = 0;
  BatchRing ring_;  // last: its threads use the members above
};

}  // namespace

std::unique_ptr<BatchSource> make_batch_source(const Dataset& dataset, const InputOptions& options,
                                               ps::DataPosition start) {
  return std::make_unique<PrefetchedBatchSource>(dataset, options, std::move(start));
}

}  // namespace syncopate
