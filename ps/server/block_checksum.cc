#include "ps/server/block_checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace syncopate::ps {
namespace {

constexpr std::uint64_t kPrime = 0x9E3779B185EBCA87;

std::uint64_t mix(std::uint64_t lane, std::uint64_t word) noexcept {
  return std::rotl((lane ^ word) * kPrime, 31);
}

}  // namespace

std::uint64_t block_checksum(std::uint64_t before, std::span<const std::byte> bytes) noexcept {
  // Four words at a time: each multiplication waits for the last one of its own lane only. Byte by
  // byte a GB takes longer than a silent server is waited for.
  std::array<std::uint64_t, 4> lanes{before, before + 1, before + 2, before + 3};
  const std::size_t size = bytes.size();
  for (; bytes.size() >= sizeof lanes; bytes = bytes.subspan(sizeof lanes)) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data(), sizeof words);
    for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = mix(lanes[i], words[i]);
  }
  std::array<std::uint64_t, 4> rest{};
  if (!bytes.empty()) std::memcpy(rest.data(), bytes.data(), bytes.size());
  std::uint64_t sum = mix(before, size);
  for (std::size_t i = 0; i < lanes.size(); ++i) sum = mix(sum, mix(lanes[i], rest[i]));
  return sum;
}

}  // namespace syncopate::ps
