// Counter-based random numbers: a value is a pure function of (seed, stream, index), so no result
// depends on the rank, the thread or the order of the draws. Source: Salmon et al. 2011, "Parallel
// random numbers: as easy as 1, 2, 3" (Philox4x32-10).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace syncopate {

// Maps a 128-bit counter and a 64-bit key to four random 32-bit words (Philox4x32-10).
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept;

// Returns the 64-bit FNV-1a hash of a name. The hash of a parameter's name selects the parameter's
// random stream.
std::uint64_t hash_name(std::string_view name) noexcept;

// The random numbers of one (seed, stream), addressed by index. The functions change no state.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t stream) noexcept : seed_(seed), stream_(stream) {}

  std::uint32_t bits(std::uint64_t index) const noexcept;
  // Returns a random number uniform in [0, 1). The number is a multiple of 2^-24, so it is exact in
  // f32 on every machine.
  float uniform(std::uint64_t index) const noexcept;
  // Returns a random number uniform in [0, bound), with a bias of at most 2^-32. bound > 0.
  std::uint32_t below(std::uint64_t index, std::uint32_t bound) const noexcept;
  // Returns four random 32-bit words at once: words 4 * index to 4 * index + 3 of the stream.
  std::array<std::uint32_t, 4> block(std::uint64_t index) const noexcept;

 private:
  std::uint64_t seed_;
  std::uint64_t stream_;
};

// Returns a permutation of 0 .. size-1, which is a function of (seed, stream). O(size). Source:
// Fisher-Yates shuffle.
std::vector<std::uint32_t> random_permutation(std::uint32_t size, std::uint64_t seed,
                                              std::uint64_t stream);

}  // namespace syncopate
