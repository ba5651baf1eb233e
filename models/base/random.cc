#include "models/base/random.h"

#include <numeric>
#include <utility>

namespace syncopate {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept {
  // Philox's multipliers and Weyl constants. Source: Salmon et al. 2011, table 2 and section 4.1.
  constexpr std::uint64_t kMultiply0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiply1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiply0 * counter[0];
    const std::uint64_t product1 = kMultiply1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::uint64_t hash_name(std::string_view name) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3ULL;
  }
  return hash;
}

std::array<std::uint32_t, 4> RandomStream::block(std::uint64_t index) const noexcept {
  return philox4x32(
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
       static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)},
      {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
}

std::uint32_t RandomStream::bits(std::uint64_t index) const noexcept {
  return block(index >> 2)[index & 3];
}

float RandomStream::uniform(std::uint64_t index) const noexcept {
  return static_cast<float>(bits(index) >> 8) * 0x1p-24F;
}

std::uint32_t RandomStream::below(std::uint64_t index, std::uint32_t bound) const noexcept {
  // Maps 32 random bits to [0, bound) by multiply and shift (Lemire 2019) instead of a division.
  // The bias is below bound / 2^32.
  return static_cast<std::uint32_t>((std::uint64_t{bits(index)} * bound) >> 32);
}

std::vector<std::uint32_t> random_permutation(std::uint32_t size, std::uint64_t seed,
                                              std::uint64_t stream) {
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0U);
  const RandomStream random(seed, stream);
  for (std::uint32_t i = size; i > 1; --i) {
    std::swap(order[i - 1], order[random.below(i, i)]);
  }
  return order;
}

}  // namespace syncopate
