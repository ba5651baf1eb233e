// Counter-based random numbers: a value is a pure function of (seed, stream, index), so that no
// result depends on who draws it, on which thread, or in which order. Source: Salmon et al. 2011,
// "Parallel random numbers: as easy as 1, 2, 3" (Philox4x32-10).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace syncopate {

// Four 32-bit words for a 128-bit counter under a 64-bit key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept;

// 64-bit FNV-1a: gives a name its stream.
std::uint64_t hash_name(std::string_view name) noexcept;

// Draws number `index` of the stream (seed, stream). Copyable, stateless but for its two keys.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) noexcept : seed_(seed), stream_(stream) {}

  std::uint32_t bits(std::uint64_t index) const noexcept;
  // Uniform in [0, 1), a multiple of 2^-24: exact in f32 on every machine.
  float uniform(std::uint64_t index) const noexcept;
  // Uniform in [0, bound), without bias beyond 2^-32. bound > 0.
  std::uint32_t below(std::uint64_t index, std::uint32_t bound) const noexcept;
  // The four words of block `index`, for callers that need several per item.
  std::array<std::uint32_t, 4> block(std::uint64_t index) const noexcept;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

// A permutation of 0 .. size-1 that is a function of (seed, stream). Fisher-Yates, O(size).
std::vector<std::uint32_t> random_permutation(std::uint32_t size, std::uint64_t seed,
                                              std::uint64_t stream);

}  // namespace syncopate
