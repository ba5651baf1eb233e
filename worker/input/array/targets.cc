#include "worker/input/array/targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "models/base/errors.h"
#include "models/base/random.h"
#include "worker/input/array/class_labels.h"

namespace syncopate {
namespace {

std::span<const std::byte> bytes_of(const Targets& targets, std::int64_t index) {
  check(index >= 0 && index < targets.size(), "a sample outside the data set");
  const auto at = static_cast<std::size_t>(index);
  if (!targets.are_numbers()) return std::as_bytes(std::span(targets.labels).subspan(at, 1));
  const auto count = static_cast<std::size_t>(targets.numbers_per_sample);
  return std::as_bytes(std::span(targets.numbers).subspan(at * count, count));
}

Targets read_numbers(const NpyFile& file) {
  const NpyHeader& header = file.header();
  const std::int64_t count = header.shape.size() == 1 ? 1 : header.shape.back();
  if (header.shape.size() > 2 || count < 1) {
    throw FileError(
        fmt::format("{}: its shape is {}; expected [N] or [N, K], one or K numbers per sample",
                    file.path(), to_string(header.shape)));
  }
  Targets targets{.labels = {}, .numbers = {}, .numbers_per_sample = count};
  targets.numbers.resize(static_cast<std::size_t>(file.num_rows() * count));
  if (!targets.numbers.empty()) file.read(0, std::as_writable_bytes(std::span(targets.numbers)));
  const auto wrong =
      std::ranges::find_if(targets.numbers, [](float number) { return !std::isfinite(number); });
  if (wrong == targets.numbers.end()) return targets;
  const std::int64_t at = wrong - targets.numbers.begin();
  throw FileError(fmt::format(
      "{}: target {} of row {}, at byte {}, is {}; expected finite numbers; remove or replace such "
      "rows with NumPy, for example by np.nan_to_num",
      file.path(), at % count, at / count,
      file.offset_of(0) + static_cast<std::uint64_t>(at) * sizeof(float), *wrong));
}

}  // namespace

std::int32_t Targets::label(std::int64_t index) const {
  if (are_numbers()) return 0;
  check(index >= 0 && index < size(), "a sample outside the data set");
  return labels[static_cast<std::size_t>(index)];
}

void Targets::read(std::int64_t index, std::span<std::byte> target) const {
  std::ranges::copy(bytes_of(*this, index), target.begin());
}

std::uint64_t Targets::fingerprint(std::int64_t index) const {
  if (!are_numbers()) return 0;
  const std::span<const std::byte> bytes = bytes_of(*this, index);
  return hash_name({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

SampleSpec Targets::spec_of(Shape sample_shape, DType dtype, int num_classes) const {
  SampleSpec spec = classified_samples(std::move(sample_shape), num_classes, dtype);
  if (!are_numbers()) return spec;
  spec.target = {"y", DType::kF32, {numbers_per_sample}};
  spec.num_classes = 0;
  const auto [least, largest] = std::ranges::minmax_element(numbers);
  spec.least_target = *least;
  spec.largest_target = *largest;
  return spec;
}

Targets read_npy_targets(const NpyFile& file) {
  if (file.header().type == "f4") return read_numbers(file);
  return {.labels = read_npy_labels(file), .numbers = {}};
}

}  // namespace syncopate
