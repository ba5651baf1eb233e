// Makes the data sets that this program draws itself. The first process draws all samples into a
// cache file, which later processes of the machine map.
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
  std::string name;           // name in messages, such as "digits"
  std::string file_name;      // name of the cache file
  std::uint32_t version = 1;  // must be raised if the drawing changes
  std::uint32_t samples = 0;
  std::size_t image_bytes = 0;  // bytes of a sample's image
  std::size_t label_bytes = 1;  // bytes of a sample's label: a class, or a class per pixel
  // Draws a sample; called on several threads.
  std::function<void(std::uint32_t index, std::span<std::uint8_t> image,
                     std::span<std::uint8_t> labels)>
      draw;

  std::size_t labels_at() const { return samples * image_bytes; }
};

// Returns all images of a data set, followed by all labels. Maps them from the cache file, or draws
// them and writes the cache file. options.on_progress is called while samples are drawn.
MappedPayload map_or_draw(const DrawnSet& set, const DataOptions& options);

}  // namespace syncopate
