#include "worker/input/batch_reader.h"

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

CropFlip draw_crop_flip(std::uint64_t seed, std::int64_t epoch,
                        std::int64_t sample_index) noexcept {
  const RandomStream random(seed, hash_name("crop-flip") + static_cast<std::uint64_t>(epoch));
  const auto words = random.block(static_cast<std::uint64_t>(sample_index));
  const auto shift = [](std::uint32_t word) {
    return static_cast<int>((std::uint64_t{word} * (2 * kCropPadding + 1)) >> 32) - kCropPadding;
  };
  return {shift(words[0]), shift(words[1]), (words[2] >> 31) != 0};
}

void apply_crop_flip(const CropFlip& crop, const Shape& shape, std::span<const std::uint8_t> source,
                     std::span<std::uint8_t> target) {
  check(shape.size() == 3, "crop-flip works on [H, W, C] images");
  const std::int64_t height = shape[0];
  const std::int64_t width = shape[1];
  const std::int64_t channels = shape[2];
  const auto bytes = static_cast<std::size_t>(height * width * channels);
  check(source.size() == bytes && target.size() == bytes, "crop-flip: an image of another size");
  // The columns of the crop that lie inside the image; the other columns are padding.
  const std::int64_t first = std::clamp<std::int64_t>(-crop.dx, 0, width);
  const std::int64_t last = std::clamp<std::int64_t>(width - crop.dx, first, width);
  for (std::int64_t y = 0; y < height; ++y) {
    std::uint8_t* row = target.data() + y * width * channels;
    const std::int64_t from_y = y + crop.dy;
    if (from_y < 0 || from_y >= height) {
      std::memset(row, 0, static_cast<std::size_t>(width * channels));
      continue;
    }
    const std::uint8_t* from = source.data() + (from_y * width + first + crop.dx) * channels;
    std::memset(row, 0, static_cast<std::size_t>(first * channels));
    std::memcpy(row + first * channels, from, static_cast<std::size_t>((last - first) * channels));
    std::memset(row + last * channels, 0, static_cast<std::size_t>((width - last) * channels));
    if (!crop.flip) continue;
    for (std::int64_t left = 0, right = width - 1; left < right; ++left, --right) {
      std::swap_ranges(row + left * channels, row + (left + 1) * channels, row + right * channels);
    }
  }
}

BatchReader::BatchReader(const Dataset& dataset, const InputOptions& options,
                         ps::DataPosition start)
    : dataset_(dataset),
      options_(options),
      plan_(dataset.size(), options, std::move(start)),
      order_(dataset.size(), options.seed, options.shuffle) {
  if (options.augment == Augment::kCropFlip && dataset.sample_shape().size() != 3) {
    throw UsageError("crop-flip needs images [H, W, C]; this data set's samples are " +
                     to_string(dataset.sample_shape()));
  }
}

BatchSlot BatchReader::make_slot() const {
  Shape shape = dataset_.sample_shape();
  shape.insert(shape.begin(), plan_.most_samples());
  BatchSlot slot;
  slot.whole.x = make_host_tensor(shape, DType::kU8);
  slot.whole.label = make_host_tensor({plan_.most_samples()}, DType::kI32);
  slot.batch = slot.whole;
  if (options_.augment == Augment::kCropFlip) {
    slot.sample.resize(static_cast<std::size_t>(num_elements(dataset_.sample_shape())));
  }
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
  if (slot.batch.size() == count) return;
  // A view of another number of rows allocates its shape; the number changes only at the short last
  // batch of an epoch.
  slot.batch.x = slot.whole.x.rows(0, count);
  slot.batch.label = slot.whole.label.rows(0, count);
}

void BatchReader::read(const ps::SampleRange& samples, std::int64_t row, BatchSlot& slot) const {
  const auto order = order_.of_epoch(samples.epoch);
  const auto sample_bytes = static_cast<std::size_t>(num_elements(dataset_.sample_shape()));
  const std::span<std::uint8_t> pixels = slot.whole.x.u8();
  const std::span<std::int32_t> labels = slot.whole.label.i32();
  for (std::int64_t place = samples.begin; place < samples.end; ++place) {
    const std::int64_t index = order ? (*order)[static_cast<std::size_t>(place)] : place;
    const auto target_row = static_cast<std::size_t>(row + place - samples.begin);
    const std::span<std::uint8_t> target = pixels.subspan(target_row * sample_bytes, sample_bytes);
    if (options_.augment == Augment::kNone) {
      labels[target_row] = dataset_.read(index, target);
    } else {
      labels[target_row] = dataset_.read(index, slot.sample);
      apply_crop_flip(draw_crop_flip(options_.seed, samples.epoch, index), dataset_.sample_shape(),
                      slot.sample, target);
    }
  }
}

}  // namespace syncopate
