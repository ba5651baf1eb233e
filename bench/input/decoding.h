// Decodes pictures on one core, with this program's decoder and with libjpeg-turbo alone, to
// compare their times. Called by syncopate-bench input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness/measure.h"
#include "worker/input/dataset.h"

namespace syncopate::bench {

// A JPEG file in memory, so that reading is not measured.
struct JpegFile {
  std::string name;
  std::vector<std::byte> bytes;
};

// Reads at most `most` JPEG files of a data set of pictures, evenly spaced over the data set. PNG
// files are left out. Throws UsageError if there are no JPEG files, and what the data set throws.
std::vector<JpegFile> read_jpeg_files(const Dataset& pictures, std::size_t most);

// Each function below decodes all files once, in colour, and returns the seconds.

// Decodes with libjpeg alone, as in its manual: from a memory source, row by row.
double decode_with_libjpeg(const std::vector<JpegFile>& files);
// Decodes with this program's decoder, without resizing.
double decode_only(const std::vector<JpegFile>& files);
// Decodes with this program's decoder and resizes to [height, width].
double decode_and_resize(const std::vector<JpegFile>& files, std::int64_t height,
                         std::int64_t width);

}  // namespace syncopate::bench
