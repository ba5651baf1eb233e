// Measures the decoder of pictures on one core, in turns with libjpeg-turbo alone. Called by
// syncopate-bench input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness/measure.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// JPEG files in memory: reading them is not measured.
struct JpegFile {
  std::string name;
  std::vector<std::byte> bytes;
};

// Reads the JPEG files of a data set of pictures, evenly spaced. Returns at most `most` files; PNG
// files are left out. Throws UsageError if there are none, and what the data set throws.
std::vector<JpegFile> read_jpeg_files(const Dataset& pictures, std::size_t most);

// Each function below decodes all files once, as colours, and returns the seconds.

// Decodes by the calls of libjpeg's manual: a memory source and one row after the other.
double decode_with_libjpeg(const std::vector<JpegFile>& files);
// Decodes at the stored size.
double decode_only(const std::vector<JpegFile>& files);
// Decodes and resizes to [height, width].
double decode_and_resize(const std::vector<JpegFile>& files, std::int64_t height,
                         std::int64_t width);

}  // namespace syncopate::bench
