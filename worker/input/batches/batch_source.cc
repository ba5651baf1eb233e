#include "worker/input/batches/batch_source.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "worker/input/batches/batch_reader.h"
#include "worker/input/batches/batch_ring.h"

namespace syncopate {
namespace {

// Slots that the consumer holds: two batches (BatchSource::next).
constexpr int kHeldByConsumer = 2;

class PrefetchedBatchSource final : public BatchSource {
 public:
  PrefetchedBatchSource(const Dataset& dataset, const InputOptions& options, ps::DataPosition start)
      : reader_(dataset, options, std::move(start)),
        ring_options_(ring_options(options, reader_.batch_bytes(), kHeldByConsumer)),
        slots_(reader_.make_slots(ring_options_)),
        ring_(ring_options_, {.fill = [this](std::int64_t sequence, std::size_t slot) {
                reader_.fill(sequence, reader_.with_memory(slots_[slot]));
              }}) {}

  const Batch& next() override {
    const std::size_t slot = ring_.take();
    ++taken_;
    return slots_[slot].batch;
  }
  ps::DataPosition position() const override { return reader_.plan().batch(taken_).position; }
  std::int64_t batches_per_epoch() const override { return reader_.plan().batches_per_epoch(); }
  InputCounters counters() const override {
    return {std::chrono::duration<double>(ring_.waited()).count(), taken_, ring_.readers(),
            ring_.most_readers()};
  }

 private:
  BatchReader reader_;
  const BatchRingOptions ring_options_;
  std::vector<BatchSlot> slots_;
  std::int64_t taken_ = 0;
  BatchRing ring_;  // last: its threads use the members above
};

}  // namespace

Autotune Autotune::share(int sources) const {
  Autotune part = *this;
  part.cpus = std::max(1, cpus / sources);
  part.lanes = lanes / sources;
  part.most_bytes = most_bytes / sources;
  return part;
}

std::string threads_text(const InputOptions& options) {
  return options.autotune.threads ? "auto" : std::to_string(options.threads);
}

std::string prefetch_text(const InputOptions& options) {
  return options.autotune.prefetch ? "auto" : std::to_string(options.prefetch);
}

std::unique_ptr<BatchSource> make_batch_source(const Dataset& dataset, const InputOptions& options,
                                               ps::DataPosition start) {
  return std::make_unique<PrefetchedBatchSource>(dataset, options, std::move(start));
}

}  // namespace syncopate
