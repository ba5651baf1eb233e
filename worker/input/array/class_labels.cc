#include "worker/input/array/class_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "models/base/errors.h"
#include "models/base/log.h"

namespace syncopate {
namespace {

// Returns a little-endian number of 1 to 8 bytes; `is_signed`: in two's complement.
std::int64_t number_at(const std::byte* at, std::size_t bytes, bool is_signed) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, bytes);
  const auto unused = static_cast<unsigned>(64 - 8 * bytes);
  return is_signed ? static_cast<std::int64_t>(bits << unused) >> unused
                   : static_cast<std::int64_t>(std::min<std::uint64_t>(bits, INT64_MAX));
}

void check_labels(const NpyFile& file) {
  const NpyHeader& header = file.header();
  const Shape& shape = header.shape;
  const bool is_integer =
      (header.type[0] == 'i' || header.type[0] == 'u') && header.item_bytes <= 8;
  // Numbers that are converted to classes would lose their fractions.
  const std::string numbers = header.type[0] != 'f'
                                  ? ""
                                  : "; if they are numbers to predict: " +
                                        numpy_conversion(file.path(), "a.astype('float32')");
  if (shape.size() == 2 && shape[1] > 1) {
    throw FileError(fmt::format(
        "{}: its shape is {}; expected one label per sample; if the rows are one-hot: {}{}",
        file.path(), to_string(shape), numpy_conversion(file.path(), "a.argmax(1)"), numbers));
  }
  if (shape.size() > 2 || (shape.size() == 2 && shape[1] != 1)) {
    throw FileError(fmt::format("{}: its shape is {}; expected [N], one label per sample",
                                file.path(), to_string(shape)));
  }
  if (!is_integer) {
    throw FileError(
        fmt::format("{}: its labels are {}; expected integers, or float32 for numbers as targets; "
                    "convert them: {}{}",
                    file.path(), numpy_name(header.type),
                    numpy_conversion(file.path(), "a.astype('int64')"), numbers));
  }
}

}  // namespace

std::vector<std::int32_t> read_npy_labels(const NpyFile& file) {
  check_labels(file);
  constexpr std::int64_t kChunkRows = 1 << 16;
  const std::size_t bytes = file.header().item_bytes;
  const bool is_signed = file.header().type[0] == 'i';
  std::vector<std::byte> chunk;
  std::vector<std::int32_t> labels;
  labels.reserve(static_cast<std::size_t>(file.num_rows()));
  for (std::int64_t row = 0; row < file.num_rows(); row += kChunkRows) {
    const std::int64_t rows = std::min(kChunkRows, file.num_rows() - row);
    chunk.resize(static_cast<std::size_t>(rows) * bytes);
    file.read(row, chunk);
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t label =
          number_at(chunk.data() + static_cast<std::size_t>(i) * bytes, bytes, is_signed);
      if (label < 0 || label > kLargestLabel) {
        throw FileError(
            fmt::format("{}: label {} (byte {}) is {}; expected 0 to {}; number the "
                        "classes from 0, or save numbers to predict as float32",
                        file.path(), row + i, file.offset_of(row + i), label, kLargestLabel));
      }
      labels.push_back(static_cast<std::int32_t>(label));
    }
  }
  return labels;
}

void warn_about_empty_classes(std::span<const std::int32_t> training_labels, std::int32_t classes,
                              std::string_view file, std::string_view advice) {
  std::vector<bool> has_sample(static_cast<std::size_t>(classes), false);
  for (const std::int32_t label : training_labels)
    has_sample[static_cast<std::size_t>(label)] = true;
  const auto empty = std::ranges::count(has_sample, false);
  if (empty == 0) return;
  const auto first = std::ranges::find(has_sample, false) - has_sample.begin();
  log(LogLevel::kWarning,
      fmt::format(
          "{}: {} of {} classes have no training sample, the first is {}; the classes are 0 "
          "to the largest label of all splits{}",
          file, empty, classes, first, advice));
}

}  // namespace syncopate
