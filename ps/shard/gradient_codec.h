// How a gradient travels: as f32, as bf16, or as its largest elements alone. A worker encodes, with
// what it left out carried over to the next step (error feedback); a shard decodes chunk by chunk,
// while it updates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace syncopate::ps {

enum class Codec : std::uint8_t { kF32, kBf16, kTopK };

struct CompressionOptions {
  Codec codec = Codec::kF32;
  double fraction = 0.01;  // kTopK: of a bucket's elements, in (0, 1]; at least one element travels
};

// "none", "bf16", "topk:0.01". Throws UsageError that names `what`, such as "--compress".
CompressionOptions parse_compression(std::string_view text, std::string_view what);

// A gradient as it travels; the bytes are borrowed and need no alignment. Little-endian.
//   kF32   n * f32
//   kBf16  n * bf16, rounded to nearest even
//   kTopK  k * u32 ascending indices below n, then k * f32
struct EncodedGradient {
  Codec codec = Codec::kF32;
  std::int64_t num_elements = 0;
  std::span<const std::byte> bytes;
};

// Whether the bytes are what the codec says they are: lengths fit, indices ascend and are below n.
// Pushes come from outside: a shard asks before it keeps one.
bool is_well_formed(const EncodedGradient& gradient) noexcept;

// Elements [begin, begin + scratch.size()) of the gradient. Returns `scratch` filled, or a window
// on the bytes themselves where they are aligned f32. The gradient is well formed. Thread-safe.
std::span<const float> decode_chunk(const EncodedGradient& gradient, std::int64_t begin,
                                    std::span<float> scratch) noexcept;

// One worker's encoder of one bucket: keeps what was left out. One thread at a time.
class GradientEncoder {
 public:
  GradientEncoder(CompressionOptions options, std::int64_t num_elements);

  // The gradient plus what earlier steps left out, encoded; valid until the next call. kF32 copies
  // nothing: the bytes are those of `gradient` [num_elements].
  // Source: error feedback, Seide et al. 2014, "1-bit SGD", section 2; top-k, Stich et al. 2018,
  // "Sparsified SGD with memory".
  // Throws ShapeError for another length.
  EncodedGradient encode(std::span<const float> gradient);

 private:
  void encode_bf16(std::span<const float> gradient);
  void encode_largest(std::span<const float> gradient);

  CompressionOptions options_;
  std::int64_t num_elements_;
  std::vector<float> left_out_;      // [num_elements] f32; empty under kF32
  std::vector<std::byte> bytes_;     // encoded
  std::vector<std::uint32_t> ties_;  // scratch of kTopK
};

}  // namespace syncopate::ps
