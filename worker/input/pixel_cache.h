// A file of rendered samples: made once, mapped read-only by everybody who comes later. It is only
// ever replaced as a whole (temporary file, rename), so that processes may race for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace syncopate {

// What the file must say of itself to be believed.
struct PixelCacheKey {
  std::uint32_t version = 0;        // of whatever renders the payload
  std::uint64_t payload_bytes = 0;  // exactly
};

struct MappedPayload {
  std::span<const std::uint8_t> bytes;
  std::shared_ptr<const void> memory;  // keeps the mapping
};

// Maps the file and checks its length, header and checksum. Nothing when it is absent, of another
// version, cut short or damaged: whatever it is, rendering again is the answer.
std::optional<MappedPayload> map_pixel_cache(const std::filesystem::path& path,
                                             const PixelCacheKey& key);

// Creates the folder when needed. Throws FileError when it or the file cannot be written; no
// temporary file stays.
void write_pixel_cache(const std::filesystem::path& path, const PixelCacheKey& key,
                       std::span<const std::uint8_t> payload);

}  // namespace syncopate
