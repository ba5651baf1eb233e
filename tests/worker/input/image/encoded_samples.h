// Makes small JPEG and PNG files in memory, by libjpeg's and libspng's own encoders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace syncopate {

using FileBytes = std::vector<std::byte>;

// Pixels [height, width, channels] of a smooth pattern with edges; different `seed`s differ.
struct Picture {
  std::int64_t width = 0;
  std::int64_t height = 0;
  int channels = 3;
  std::vector<std::uint8_t> pixels;
};
Picture make_picture(std::int64_t width, std::int64_t height, int channels = 3, unsigned seed = 1);

struct JpegForm {
  int horizontal_sampling = 2;  // of luma; chroma has 1
  int vertical_sampling = 2;
  int quality = 90;
  bool progressive = false;
  int num_scans = 0;         // with progressive: this many scans instead of the default
  int exif_orientation = 0;  // 0: without an EXIF block
  bool big_endian_exif = false;
  int restart_interval = 0;
};
// 1 channel: grey. 4 channels: CMYK with Adobe's marker.
FileBytes make_jpeg(const Picture& picture, const JpegForm& form = {});

struct PngForm {
  int bit_depth = 8;
  bool interlaced = false;
  bool palette = false;      // 1 channel: the values become indices of a grey palette
  int exif_orientation = 0;  // 0: without an eXIf chunk
};
// 1 channel: grey, 2: grey and opacity, 3: RGB, 4: RGB and opacity.
FileBytes make_png(const Picture& picture, const PngForm& form = {});

}  // namespace syncopate
