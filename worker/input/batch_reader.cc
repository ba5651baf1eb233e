#include "worker/input/batch_reader.h"

#include <fmt/format.h>

#include <algorithm>
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
  slot.whole.num_samples = plan_.most_samples();
  slot.batch = slot.whole;
  slot.sample.resize(dataset_.spec().inputs.size());
  return slot;
}

void BatchReader::fill(std::int64_t sequence, BatchSlot& slot) const {
  const PlannedBatch planned = plan_.batch(sequence);
  resize(slot, planned.end - planned.begin);
  slot.batch.loss_divisor = planned.global_count;
  for (std::int64_t i = planned.begin; i < planned.end;) {
    const ps::SampleRange samples = plan_.range_at(planned, i);
    read(samples, i - planned.begin, slot);
    i += samples.end - samples.begin;
  }
}

void BatchReader::fill(const ps::SampleRange& samples, std::int64_t loss_divisor,
                       BatchSlot& slot) const {
  resize(slot, samples.end - samples.begin);
  slot.batch.loss_divisor = loss_divisor;
  read(samples, 0, slot);
}

void BatchReader::resize(BatchSlot& slot, std::int64_t count) {
  if (slot.batch.num_samples == count) return;
  // A view of another number of rows allocates its shape; the number changes only at the short last
  // batch of an epoch.
  slot.batch = slot.whole.rows(0, count);
}

void BatchReader::read(const ps::SampleRange& samples, std::int64_t row, BatchSlot& slot) const {
  const auto order = order_.of_epoch(samples.epoch);
  const SampleSpec& spec = dataset_.spec();
  const auto memory_of = [](const Tensor& rows, std::size_t index, const TensorSpec& tensor) {
    const std::size_t size = tensor.size_bytes();
    return rows.bytes().subspan(index * size, size);
  };
  for (std::int64_t place = samples.begin; place < samples.end; ++place) {
    const std::int64_t index = order ? (*order)[static_cast<std::size_t>(place)] : place;
    const auto target_row = static_cast<std::size_t>(row + place - samples.begin);
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      slot.sample[i] = memory_of(slot.whole.inputs[i], target_row, spec.inputs[i]);
    }
    dataset_.read(index, make_draw(options_.augment, options_.seed, samples.epoch, index),
                  {slot.sample, memory_of(slot.whole.target, target_row, spec.target)});
  }
}

}  // namespace syncopate
