// Fills batches: finds the samples of a batch from the BatchPlan and the order of the epoch, draws
// their augmentation and reads them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "models/backend/model.h"
#include "models/tensor/tensor.h"
#include "ps/coordinator/data_position.h"
#include "worker/input/batches/batch_plan.h"
#include "worker/input/batches/batch_ring.h"
#include "worker/input/batches/batch_source.h"
#include "worker/input/dataset.h"

namespace syncopate {

// Computes the order of the samples of each epoch: a permutation that depends on (seed, epoch)
// only, or 0, 1, 2, ... without shuffling. Stores the orders of the two latest epochs, because
// readers may be in two epochs at the same time. Thread-safe.
class EpochOrder {
 public:
  // shuffle: false means the order 0, 1, 2, ... in every epoch. Throws UsageError for a shuffled
  // data set of 2^32 or more samples.
  EpochOrder(std::int64_t dataset_size, std::uint64_t seed, bool shuffle);

  // Returns the permutation of 0 .. dataset_size - 1; null for the order 0, 1, 2, ... The first
  // call for an epoch computes the permutation, which takes about 1 ms for 60,000 samples; other
  // callers wait.
  std::shared_ptr<const std::vector<std::uint32_t>> of_epoch(std::int64_t epoch) const;

 private:
  struct Entry {
    std::int64_t epoch = -1;
    std::shared_ptr<const std::vector<std::uint32_t>> order;
  };

  std::uint32_t size_;
  std::uint64_t seed_;
  bool shuffle_;
  mutable std::mutex mutex_;
  // The order of epoch e is in recent_[e % 2]; guarded by mutex_.
  mutable std::array<Entry, 2> recent_;
};

// The memory of one batch, which is reused for many batches.
struct BatchSlot {
  Batch whole;  // has the memory for the largest share
  Batch batch;  // `whole`, or the first rows of `whole`
  // the memory for the inputs of the sample that is being read
  std::vector<std::span<std::byte>> sample;

  bool has_memory() const noexcept { return !whole.inputs.empty(); }
};

// Reads the samples of batches, which a BatchPlan determines, into slots (BatchSlot). Immutable and
// thread-safe: several threads may call fill() with different slots.
class BatchReader {
 public:
  // Makes a reader. Throws UsageError for options that make_batch_source() refuses.
  BatchReader(const Dataset& dataset, const InputOptions& options, ps::DataPosition start);

  const BatchPlan& plan() const noexcept { return plan_; }

  // Returns how many bytes of memory the largest batch needs.
  std::int64_t batch_bytes() const;
  // Makes a slot with memory for the largest batch. Throws OutOfMemoryError.
  BatchSlot make_slot() const;
  // Makes all slots that a BatchRing with these options may use. Allocates memory only for the
  // slots that the ring uses at the start. When the InputTuner lets the ring use further slots,
  // with_memory() allocates their memory. Throws OutOfMemoryError.
  std::vector<BatchSlot> make_slots(const BatchRingOptions& ring) const;
  // Allocates the memory of a slot that has none, and returns the slot. Throws OutOfMemoryError.
  BatchSlot& with_memory(BatchSlot& slot) const;
  // Reads batch number `sequence` of plan() into `slot`. Throws what the data set throws.
  void fill(std::int64_t sequence, BatchSlot& slot) const;
  // Reads the given samples, at most plan().most_samples(), into `slot`. loss_divisor: the value
  // for Batch::loss_divisor, from which the number of samples that are left out is subtracted.
  void fill(const ps::SampleRange& samples, std::int64_t loss_divisor, BatchSlot& slot) const;

 private:
  static void resize(BatchSlot& slot, std::int64_t count);
  // Reads samples into `slot`, from row `row` of the batch on. Returns the row after the last
  // sample that was stored; bad samples may be left out.
  std::int64_t read(const ps::SampleRange& samples, std::int64_t row, BatchSlot& slot) const;
  // Reads the tensors of sample `index` that this task uses: the inputs, the target or both.
  void read_parts(std::int64_t index, const Draw& draw, const SampleView& sample) const;
  // Reads sample `index` and returns true. If the sample is bad, returns false. In this case
  // `sample` has the good sample that replaces the bad sample, or is undefined if bad samples are
  // left out.
  bool read_good(std::int64_t index, const Draw& draw, const SampleView& sample) const;
  // Shortens the batch of the slot to its first `count` samples.
  static void shorten(BatchSlot& slot, std::int64_t count);

  const Dataset& dataset_;
  InputOptions options_;
  BatchPlan plan_;
  EpochOrder order_;
};

}  // namespace syncopate
