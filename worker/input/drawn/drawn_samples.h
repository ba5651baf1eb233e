// Data sets that this program draws. The first process draws all samples into a cache file, which
// later processes of the machine map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "worker/input/dataset.h"
#include "worker/input/pixel_cache.h"

namespace syncopate {

struct DrawnSet {
  std::string name;           // in messages, such as "digits"
  std::string file_name;      // of the cache
  std::uint32_t version = 1;  // raised when a pixel changes
  std::uint32_t samples = 0;
  std::size_t image_bytes = 0;  // of a sample
  std::size_t label_bytes = 1;  // of a sample: a class, or one of each pixel
  // Draws a sample, on any thread.
  std::function<void(std::uint32_t index, std::span<std::uint8_t> image,
                     std::span<std::uint8_t> labels)>
      draw;

  std::size_t labels_at() const { return samples * image_bytes; }
};

// Returns all images, then all labels. Drawing calls options.on_progress until all threads end.
MappedPayload map_or_draw(const DrawnSet& set, const DataOptions& options);

}  // namespace syncopate
