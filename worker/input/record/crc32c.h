// Computes the checksum of TFRecord files, which is a masked CRC-32C (Castagnoli).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace syncopate {

// Returns the CRC-32C of `bytes`, with the reflected polynomial 0x82F63B78. The CRC-32C of
// "123456789" is 0xE3069283. Source: RFC 3720, appendix B.4.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;

// Returns the CRC-32C in the form that TFRecord stores: rotated by 15 bits, plus a constant. An
// unmasked CRC would be weak for data that contain CRCs. Source: TensorFlow,
// core/lib/hash/crc32c.h.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes) noexcept;

}  // namespace syncopate
