#include "ps/shard/gradient_codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>

#include "models/base/denormals.h"
#include "models/base/errors.h"
#include "models/base/isa.h"
#include "models/base/parse_number.h"
#include "models/tensor/sums.h"

namespace syncopate::ps {
namespace {

constexpr std::size_t kIndexBytes = sizeof(std::uint32_t);
constexpr std::size_t kValueBytes = sizeof(float);
constexpr std::int64_t kMostIndices = std::int64_t{1} << 32U;
// Masks a float's sign bit out. The other bits, as an integer, order floats by magnitude, NaN last.
constexpr std::uint32_t kMagnitude = 0x7fffffffU;

// Reads a number of an encoded gradient at an address of any alignment.
template <typename T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::uint32_t magnitude(float value) noexcept {
  return std::bit_cast<std::uint32_t>(value) & kMagnitude;
}

// Returns 0 for an infinity or NaN: in the carried error it would spoil every later step, even if
// the optimizer skips this one.
float finite_or_zero(float value) noexcept { return std::isfinite(value) ? value : 0.0F; }

std::int64_t largest_count(double fraction, std::int64_t num_elements) {
  const auto wanted = std::llround(fraction * static_cast<double>(num_elements));
  return std::clamp<std::int64_t>(wanted, 1, num_elements);
}

bool has_ascending_indices(const std::byte* indices, std::size_t count,
                           std::int64_t num_elements) noexcept {
  std::int64_t last = -1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t index = load<std::uint32_t>(indices + i * kIndexBytes);
    if (index <= last) return false;
    last = index;
  }
  return last < num_elements;
}

// Returns the position of the first of `count` ascending indices that is at least `wanted`.
std::size_t find_index(const std::byte* indices, std::size_t count, std::int64_t wanted) noexcept {
  std::size_t first = 0;
  while (count > 0) {
    const std::size_t half = count / 2;
    if (load<std::uint32_t>(indices + (first + half) * kIndexBytes) < wanted) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

void decode_largest(std::span<const std::byte> bytes, std::int64_t begin,
                    std::span<float> scratch) noexcept {
  std::ranges::fill(scratch, 0.0F);
  const std::size_t count = bytes.size() / (kIndexBytes + kValueBytes);
  const std::byte* const indices = bytes.data();
  const std::byte* const values = bytes.data() + count * kIndexBytes;
  const auto end = begin + static_cast<std::int64_t>(scratch.size());
  for (std::size_t i = find_index(indices, count, begin); i < count; ++i) {
    const std::int64_t index = load<std::uint32_t>(indices + i * kIndexBytes);
    if (index >= end) break;
    scratch[static_cast<std::size_t>(index - begin)] = load<float>(values + i * kValueBytes);
  }
}

// Describes the k largest elements of a gradient: all above `threshold`, and the first
// `at_threshold` elements that are equal to it.
struct Cutoff {
  std::uint32_t threshold = 0;
  std::int64_t at_threshold = 0;
};

// Finds the k largest elements. Counts elements by their upper bits first; only the few that share
// the upper bits of the k-th largest must be sorted.
Cutoff find_cutoff(std::span<const float> values, std::int64_t k,
                   std::vector<std::uint32_t>& scratch) {
  constexpr unsigned kLowerBits = 20;
  std::array<std::int64_t, std::size_t{1} << (31 - kLowerBits)> counts{};
  for (const float value : values) ++counts[magnitude(value) >> kLowerBits];
  std::size_t upper = counts.size() - 1;
  std::int64_t rank = k;  // of the k-th, from 1, among values with its upper bits
  for (; counts[upper] < rank; --upper) rank -= counts[upper];
  scratch.clear();
  for (const float value : values) {
    if (magnitude(value) >> kLowerBits == upper) scratch.push_back(magnitude(value));
  }
  const auto kth = scratch.begin() + (rank - 1);
  std::nth_element(scratch.begin(), kth, scratch.end(), std::greater<>());
  return {*kth, rank - std::count_if(scratch.begin(), kth, [&](auto m) { return m > *kth; })};
}

}  // namespace

void round_to(ValuesFormat format, std::span<float> values) noexcept {
  if (format == ValuesFormat::kF32) return;
  const SumKernels& kernels = sum_kernels(detect_isa());
  std::array<std::uint16_t, 1024> words;
  while (!values.empty()) {
    const std::span<float> part = values.first(std::min(values.size(), words.size()));
    const auto count = static_cast<std::int64_t>(part.size());
    kernels.to_bf16(words.data(), part.data(), count);
    kernels.from_bf16(part.data(), words.data(), count);
    values = values.subspan(part.size());
  }
}

CompressionOptions parse_compression(std::string_view text, std::string_view what) {
  const std::size_t colon = text.find(':');
  const bool has_number = colon != std::string_view::npos;
  const auto codec = value_named<Codec>(text.substr(0, colon));
  if (codec && codec != Codec::kTopK && !has_number) return {.codec = *codec};
  if (codec == Codec::kTopK && has_number) {
    const std::string_view number = text.substr(colon + 1);
    const double fraction = parse_number<double>(number).value_or(0.0);
    if (fraction > 0.0 && fraction <= 1.0) {
      return {.codec = Codec::kTopK, .fraction = fraction};
    }
    throw UsageError(
        fmt::format("{} {}: \"{}\" is not a fraction of a gradient's elements; expected a number "
                    "above 0 and at most 1, such as topk:0.01",
                    what, text, number));
  }
  throw UsageError(
      fmt::format("{} {}: unknown compression; expected none, bf16 or topk:FRACTION, such as "
                  "topk:0.01",
                  what, text));
}

std::string to_text(const CompressionOptions& options) {
  const std::string_view word = name(options.codec);
  if (options.codec != Codec::kTopK) return std::string(word);
  return fmt::format("{}:{}", word, options.fraction);
}

bool is_well_formed(const EncodedGradient& gradient) noexcept {
  if (gradient.num_elements < 0) return false;
  const auto elements = static_cast<std::size_t>(gradient.num_elements);
  const std::size_t size = gradient.bytes.size();
  switch (gradient.codec) {
    case Codec::kF32:
      return size % kValueBytes == 0 && size / kValueBytes == elements;
    case Codec::kBf16:
      return size % sizeof(std::uint16_t) == 0 && size / sizeof(std::uint16_t) == elements;
    case Codec::kTopK: {
      const std::size_t count = size / (kIndexBytes + kValueBytes);
      return size % (kIndexBytes + kValueBytes) == 0 && count >= 1 && count <= elements &&
             has_ascending_indices(gradient.bytes.data(), count, gradient.num_elements);
    }
  }
  return false;  // a codec that this version does not know
}

std::span<const float> decode_chunk(const EncodedGradient& gradient, std::int64_t begin,
                                    std::span<float> scratch) noexcept {
  const auto first = static_cast<std::size_t>(begin);
  switch (gradient.codec) {
    case Codec::kF32: {
      const std::byte* const from = gradient.bytes.data() + first * kValueBytes;
      if (std::bit_cast<std::uintptr_t>(from) % alignof(float) == 0) {
        return {reinterpret_cast<const float*>(from), scratch.size()};
      }
      std::ranges::copy(gradient.bytes.subspan(first * kValueBytes, scratch.size_bytes()),
                        std::as_writable_bytes(scratch).begin());
      break;
    }
    case Codec::kBf16: {
      const std::byte* const from = gradient.bytes.data() + first * sizeof(std::uint16_t);
      sum_kernels(detect_isa())
          .from_bf16(scratch.data(), from, static_cast<std::int64_t>(scratch.size()));
      break;
    }
    case Codec::kTopK:
      decode_largest(gradient.bytes, begin, scratch);
      break;
  }
  return scratch;
}

GradientEncoder::GradientEncoder(CompressionOptions options, std::int64_t num_elements)
    : options_(options), num_elements_(num_elements) {
  check(num_elements >= 1, "a bucket has elements");
  if (options_.codec == Codec::kF32) return;
  error_.resize(static_cast<std::size_t>(num_elements));
  if (options_.codec == Codec::kBf16) {
    bytes_.resize(static_cast<std::size_t>(num_elements) * sizeof(std::uint16_t));
    return;
  }
  check(num_elements <= kMostIndices, "indices of a bucket's elements are 32 bits wide");
  bytes_.resize(static_cast<std::size_t>(largest_count(options_.fraction, num_elements)) *
                (kIndexBytes + kValueBytes));
}

EncodedGradient GradientEncoder::encode(std::span<const float> gradient) {
  if (gradient.size() != static_cast<std::size_t>(num_elements_)) {
    throw ShapeError(fmt::format("encoder: a gradient of {} elements, expected {}", gradient.size(),
                                 num_elements_));
  }
  const FlushDenormals flush;  // carried errors can become very small
  switch (options_.codec) {
    case Codec::kF32:
      return {Codec::kF32, num_elements_, std::as_bytes(gradient)};
    case Codec::kBf16:
      encode_bf16(gradient);
      break;
    case Codec::kTopK:
      encode_largest(gradient);
      break;
  }
  return {options_.codec, num_elements_, bytes_};
}

void GradientEncoder::encode_bf16(std::span<const float> gradient) {
  sum_kernels(detect_isa())
      .to_bf16_with_error(bytes_.data(), gradient.data(), error_.data(), num_elements_);
}

void GradientEncoder::encode_largest(std::span<const float> gradient) {
  for (std::size_t i = 0; i < gradient.size(); ++i) error_[i] += gradient[i];
  const std::size_t k = bytes_.size() / (kIndexBytes + kValueBytes);
  const Cutoff cutoff = find_cutoff(error_, static_cast<std::int64_t>(k), ties_);
  std::int64_t equals_left = cutoff.at_threshold;
  std::byte* index_to = bytes_.data();
  std::byte* value_to = bytes_.data() + k * kIndexBytes;
  for (std::size_t i = 0; i < error_.size(); ++i) {
    const std::uint32_t m = magnitude(error_[i]);
    if (m < cutoff.threshold || (m == cutoff.threshold && equals_left-- <= 0)) {
      error_[i] = finite_or_zero(error_[i]);
      continue;
    }
    const auto index = static_cast<std::uint32_t>(i);
    std::memcpy(index_to, &index, sizeof index);
    std::memcpy(value_to, &error_[i], sizeof(float));
    index_to += kIndexBytes;
    value_to += kValueBytes;
    error_[i] = 0.0F;
  }
}

}  // namespace syncopate::ps
