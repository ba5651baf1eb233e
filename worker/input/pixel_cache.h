// A file of rendered samples. One process writes the file, and later processes map it read-only.
// The file is only replaced as a whole (temporary file, rename), so several processes may write it
// at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace syncopate {

// The key in the header of a cache file. A reader uses the file only if this key equals the
// reader's key.
struct PixelCacheKey {
  std::uint32_t version = 0;        // version of the code that renders the payload
  std::uint64_t payload_bytes = 0;  // size of the payload without the header
};

struct MappedPayload {
  std::span<const std::uint8_t> bytes;
  std::shared_ptr<const void> memory;  // owns the file's mapping
};

// Maps a cache file and checks its length, header and checksum. Returns nullopt if the file is
// absent, of another version, cut short or damaged; the caller then renders the samples again.
std::optional<MappedPayload> map_pixel_cache(const std::filesystem::path& path,
                                             const PixelCacheKey& key);

// Like map_pixel_cache(), but accepts a payload of any size.
std::optional<MappedPayload> map_pixel_cache_of_any_size(const std::filesystem::path& path,
                                                         std::uint32_t version);

// Writes a cache file, and creates its folder if necessary. Throws FileError on failure; then no
// temporary file is left.
void write_pixel_cache(const std::filesystem::path& path, const PixelCacheKey& key,
                       std::span<const std::uint8_t> payload);

}  // namespace syncopate
