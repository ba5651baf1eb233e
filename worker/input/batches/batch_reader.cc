#include "worker/input/batches/batch_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "worker/input/draw.h"

namespace syncopate {

EpochOrder::EpochOrder(std::int64_t dataset_size, std::uint64_t seed, bool shuffle)
    : size_(static_cast<std::uint32_t>(dataset_size)), seed_(seed), shuffle_(shuffle) {
  if (shuffle && dataset_size > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(
        fmt::format("cannot shuffle {} samples; expected fewer than 2^32", dataset_size));
  }
}

std::shared_ptr<const std::vector<std::uint32_t>> EpochOrder::of_epoch(std::int64_t epoch) const {
  if (!shuffle_) return nullptr;
  const std::lock_guard lock(mutex_);
  Entry& entry = recent_[static_cast<std::size_t>(epoch & 1)];
  if (entry.epoch != epoch) {
    const std::uint64_t stream = hash_name("epoch order") + static_cast<std::uint64_t>(epoch);
    entry.order = std::make_shared<const std::vector<std::uint32_t>>(
        random_permutation(size_, seed_, stream));
    entry.epoch = epoch;
  }
  return entry.order;
}

BatchReader::BatchReader(const Dataset& dataset, const InputOptions& options,
                         ps::DataPosition start)
    : dataset_(dataset),
      options_(options),
      plan_(dataset.size(), options, std::move(start)),
      order_(dataset.size(), options.seed, options.shuffle) {
  check_augment(options.augment, dataset.spec().inputs.front());
}

BatchSlot BatchReader::make_slot() const {
  const auto make_rows = [&](const TensorSpec& spec) {
    Shape shape = spec.shape;
    shape.insert(shape.begin(), plan_.most_samples());
    return make_host_tensor(shape, spec.dtype);
  };
  BatchSlot slot;
  for (const TensorSpec& input : dataset_.spec().inputs) {
    slot.whole.inputs.push_back(make_rows(input));
  }
  slot.whole.target = make_rows(dataset_.spec().target);
  slot.whole.keys = make_rows({.name = "keys", .dtype = DType::kI64, .shape = {}});
  slot.whole.num_samples = plan_.most_samples();
  slot.batch = slot.whole;
  slot.sample.resize(dataset_.spec().inputs.size());
  return slot;
}

std::int64_t BatchReader::batch_bytes() const {
  const SampleSpec& spec = dataset_.spec();
  std::size_t bytes = sizeof(std::uint64_t) + spec.target.size_bytes();  // with the key
  for (const TensorSpec& input : spec.inputs) bytes += input.size_bytes();
  return static_cast<std::int64_t>(bytes) * plan_.most_samples();
}

std::vector<BatchSlot> BatchReader::make_slots(const BatchRingOptions& ring) const {
  std::vector<BatchSlot> slots(ring.num_slots());
  for (int i = 0; i < ring.input.ahead + ring.held; ++i) {
    slots[static_cast<std::size_t>(i)] = make_slot();
  }
  return slots;
}

BatchSlot& BatchReader::with_memory(BatchSlot& slot) const {
  if (!slot.has_memory()) slot = make_slot();
  return slot;
}

void BatchReader::fill(std::int64_t sequence, BatchSlot& slot) const {
  const PlannedBatch planned = plan_.batch(sequence);
  resize(slot, planned.end - planned.begin);
  slot.batch.loss_divisor = planned.global_count;
  std::int64_t row = 0;
  for (std::int64_t i = planned.begin; i < planned.end;) {
    const ps::SampleRange samples = plan_.range_at(planned, i);
    row = read(samples, row, slot);
    i += samples.end - samples.begin;
  }
  shorten(slot, row);
}

void BatchReader::fill(const ps::SampleRange& samples, std::int64_t loss_divisor,
                       BatchSlot& slot) const {
  resize(slot, samples.end - samples.begin);
  slot.batch.loss_divisor = loss_divisor;
  shorten(slot, read(samples, 0, slot));
}

void BatchReader::resize(BatchSlot& slot, std::int64_t count) {
  slot.batch.num_bad = 0;
  if (slot.batch.num_samples == count) return;
  // A view of another number of rows allocates its shape; the number changes only at the short last
  // batch of an epoch and where bad samples are left out.
  slot.batch = slot.whole.rows(0, count);
}

void BatchReader::shorten(BatchSlot& slot, std::int64_t count) {
  const std::int64_t left_out = slot.batch.num_samples - count;
  if (left_out == 0) return;
  const Batch full = slot.batch;
  slot.batch = slot.whole.rows(0, count);
  slot.batch.num_bad = full.num_bad;
  slot.batch.loss_divisor = full.loss_divisor - left_out;
}

std::int64_t BatchReader::read(const ps::SampleRange& samples, std::int64_t row,
                               BatchSlot& slot) const {
  const auto order = order_.of_epoch(samples.epoch);
  const SampleSpec& spec = dataset_.spec();
  const auto memory_of = [&row](const Tensor& rows, const TensorSpec& tensor) {
    const std::size_t size = tensor.size_bytes();
    return rows.bytes().subspan(static_cast<std::size_t>(row) * size, size);
  };
  for (std::int64_t place = samples.begin; place < samples.end; ++place) {
    const std::int64_t index = order ? (*order)[static_cast<std::size_t>(place)] : place;
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      slot.sample[i] = memory_of(slot.whole.inputs[i], spec.inputs[i]);
    }
    const bool is_good =
        read_good(index, make_draw(options_.augment, options_.seed, samples.epoch, index),
                  {slot.sample, memory_of(slot.whole.target, spec.target)});
    const std::uint64_t key = make_key(options_.seed, samples.epoch, index);
    std::memcpy(slot.whole.keys.bytes().data() + static_cast<std::size_t>(row) * sizeof key, &key,
                sizeof key);
    if (!is_good) ++slot.batch.num_bad;
    if (is_good || !options_.leaves_out_bad) ++row;
  }
  return row;
}

void BatchReader::read_parts(std::int64_t index, const Draw& draw, const SampleView& sample) const {
  const bool needs_inputs = options_.shard.reads_inputs;
  if (!needs_inputs && !options_.shard.reads_targets) return;
  const TensorSpec& target = dataset_.spec().target;
  const bool is_class = target.dtype == DType::kI32 && target.shape.empty();
  // A sample that cannot be read may be replaced by one of another class.
  if (needs_inputs || !is_class || dataset_.bad_samples() != nullptr) {
    return read_sample(dataset_, index, draw, sample);
  }
  const std::int32_t label = dataset_.label(index);
  std::memcpy(sample.target.data(), &label, sizeof label);
  check_target(dataset_, index, sample.target);
}

bool BatchReader::read_good(std::int64_t index, const Draw& draw, const SampleView& sample) const {
  BadSamples* const bad = dataset_.bad_samples();
  std::string first;
  // More bad samples in a row than the limit are too many under every strategy.
  for (std::int64_t distance = 0;; ++distance) {
    try {
      read_parts((index + distance) % dataset_.size(), draw, sample);
      return distance == 0;
    } catch (const BadSampleError&) {
      throw;
    } catch (const FileError& error) {
      if (bad == nullptr) throw BadSampleError(error.what());
      if (first.empty()) first = error.what();
      bad->note(error.what(),
                options_.leaves_out_bad ? "left out" : "replaced by the next good one");
      if (options_.leaves_out_bad) return false;
      bad->require_few(std::min(distance + 1, dataset_.size()), "a row");
      if (distance + 1 == dataset_.size()) throw BadSampleError(first);  // no sample is good
    }
  }
}

}  // namespace syncopate
