// The checksum of a snapshot's blocks: finds what a disk or a crash has damaged, at the speed at
// which memory is read. No hash for tables, and no protection against anybody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syncopate::ps {

// Of the bytes behind others whose checksum is `before`. One changed word always shows.
std::uint64_t block_checksum(std::uint64_t before, std::span<const std::byte> bytes) noexcept;

}  // namespace syncopate::ps
