// The encodings of a gradient in a message: f32, bf16, or its largest elements only. A worker
// encodes and carries the rounding error over to the next step (error feedback); a shard decodes
// chunk by chunk while it updates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/enum_names.h"

namespace syncopate::ps {

enum class Codec : std::uint8_t { kF32, kBf16, kTopK };
constexpr auto named_values(Codec /*type*/) {
  return std::array{Named{"none", Codec::kF32}, Named{"bf16", Codec::kBf16},
                    Named{"topk", Codec::kTopK}};
}

struct CompressionOptions {
  Codec codec = Codec::kF32;
  // For kTopK: the fraction of a bucket's elements that is sent, in (0, 1]. At least one element is
  // sent.
  double fraction = 0.01;
};

// How workers receive values: exact, or rounded to the nearest bf16.
enum class ValuesFormat : std::uint8_t { kF32, kBf16 };

// Returns the format of values in a job that compresses gradients in this way.
constexpr ValuesFormat values_format(const CompressionOptions& compression) noexcept {
  return compression.codec == Codec::kBf16 ? ValuesFormat::kBf16 : ValuesFormat::kF32;
}
constexpr std::int64_t bytes_per_value(ValuesFormat format) noexcept {
  return format == ValuesFormat::kBf16 ? 2 : 4;
}
// Rounds exact values to the values that a worker receives in this format.
void round_to(ValuesFormat format, std::span<float> values) noexcept;

// Parses "none", "bf16" or "topk:0.01". Throws UsageError that names `what`, such as "--compress".
CompressionOptions parse_compression(std::string_view text, std::string_view what);
// Returns the text that parse_compression() reads.
std::string to_text(const CompressionOptions& options);

// An encoded gradient. The bytes are borrowed, need no alignment, and are little-endian:
//   kF32   n * f32
//   kBf16  n * bf16, rounded to nearest even
//   kTopK  k * u32 ascending indices below n, then k * f32
struct EncodedGradient {
  Codec codec = Codec::kF32;
  std::int64_t num_elements = 0;
  std::span<const std::byte> bytes;
};

// Returns whether the bytes are valid for the codec: the length fits, indices ascend and are below
// n. A shard checks every push on arrival, because pushes come from other processes.
bool is_well_formed(const EncodedGradient& gradient) noexcept;

// Decodes gradient elements [begin, begin + scratch.size()) of a well-formed gradient. Returns
// `scratch` with the decoded elements. If the gradient's bytes are aligned f32, returns a span of
// those bytes instead, without a copy. Thread-safe.
std::span<const float> decode_chunk(const EncodedGradient& gradient, std::int64_t begin,
                                    std::span<float> scratch) noexcept;

// Encodes a worker's gradients of one bucket, and keeps the errors of the encoding for the next
// step. One thread at a time.
class GradientEncoder {
 public:
  GradientEncoder(CompressionOptions options, std::int64_t num_elements);

  // Encodes the gradient plus the errors of earlier steps; the result is valid until the next call.
  // kF32 copies nothing: the result refers to the bytes of `gradient` [num_elements].
  // Source: error feedback, Seide et al. 2014, "1-bit SGD", section 2; top-k, Stich et al. 2018,
  // "Sparsified SGD with memory".
  // Throws ShapeError if `gradient` has another length.
  EncodedGradient encode(std::span<const float> gradient);

 private:
  void encode_bf16(std::span<const float> gradient);
  void encode_largest(std::span<const float> gradient);

  CompressionOptions options_;
  std::int64_t num_elements_;
  // [num_elements] f32: the part of the gradients that has not been sent yet; empty under kF32.
  std::vector<float> error_;
  std::vector<std::byte> bytes_;     // the encoded gradient
  std::vector<std::uint32_t> ties_;  // top-k: scratch memory
};

}  // namespace syncopate::ps
