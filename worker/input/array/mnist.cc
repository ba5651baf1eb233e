#include "worker/input/array/mnist.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "worker/input/array/byte_stream.h"
#include "worker/input/dataset.h"

namespace syncopate {

namespace {

constexpr std::uint32_t kImagesMagic = 0x803;  // of a file of images: u8, three dimensions
constexpr std::uint32_t kLabelsMagic = 0x801;  // of a file of labels: u8, one dimension
constexpr std::uint32_t kLargestImageSide =
    4096;  // largest height and width in pixels; count * rows * columns < 2^56

std::string magic_text(std::uint32_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[(value >> shift) & 0xFU];
  return text;
}

FileError cut_short_file(const std::filesystem::path& path, std::uint64_t expected,
                         std::uint64_t found) {
  return FileError(
      fmt::format("{} is cut short: expected {} bytes (unpacked), found {}; fetch the file again",
                  path.string(), expected, found));
}

std::vector<std::uint32_t> read_header(const std::filesystem::path& path, ByteStream& stream,
                                       std::uint32_t magic, std::size_t dimensions) {
  std::array<std::uint8_t, 16> bytes{};
  const std::size_t size = 4 * (1 + dimensions);
  const std::size_t got = stream.read(std::span(bytes).first(size));
  if (got < size) throw cut_short_file(path, size, got);
  const auto word = [&](std::size_t i) {  // reads a big-endian number
    return std::uint32_t{bytes[4 * i]} << 24 | std::uint32_t{bytes[4 * i + 1]} << 16 |
           std::uint32_t{bytes[4 * i + 2]} << 8 | std::uint32_t{bytes[4 * i + 3]};
  };
  if (word(0) != magic) {
    throw FileError(path.string() + " has the magic number " + magic_text(word(0)) + "; expected " +
                    magic_text(magic) + " (IDX " + (dimensions == 3 ? "images" : "labels") +
                    "); is it another file under this name?");
  }
  std::vector<std::uint32_t> sizes;
  for (std::size_t i = 1; i <= dimensions; ++i) sizes.push_back(word(i));
  if (sizes[0] == 0) {
    throw FileError(path.string() +
                    " holds no samples; expected one or more; fetch the file again");
  }
  return sizes;
}

std::vector<std::uint8_t> read_payload(const std::filesystem::path& path, ByteStream& stream,
                                       std::uint64_t header_bytes, std::uint64_t size) {
  std::vector<std::uint8_t> bytes = read_up_to(stream, size);
  if (bytes.size() < size)
    throw cut_short_file(path, header_bytes + size, header_bytes + bytes.size());
  std::array<std::uint8_t, 1> extra{};
  if (stream.read(extra) != 0) {
    throw FileError(fmt::format(
        "{} goes on after the {} bytes (unpacked) that its header announces; fetch the file again",
        path.string(), header_bytes + size));
  }
  return bytes;
}

}  // namespace

IdxImages read_idx_images(const std::filesystem::path& path) {
  const std::unique_ptr<ByteStream> stream = open_byte_stream(path);
  const std::vector<std::uint32_t> sizes = read_header(path, *stream, kImagesMagic, 3);
  for (const std::uint32_t side : {sizes[1], sizes[2]}) {
    if (side == 0 || side > kLargestImageSide) {
      throw FileError(fmt::format(
          "{} announces images of {} x {} pixels; expected 1 to {} a side; fetch the file again",
          path.string(), sizes[1], sizes[2], kLargestImageSide));
    }
  }
  IdxImages images{sizes[0], sizes[1], sizes[2], {}};
  images.pixels = read_payload(path, *stream, 16, std::uint64_t{sizes[0]} * sizes[1] * sizes[2]);
  return images;
}

std::vector<std::uint8_t> read_idx_labels(const std::filesystem::path& path, int num_classes) {
  const std::unique_ptr<ByteStream> stream = open_byte_stream(path);
  const std::vector<std::uint32_t> sizes = read_header(path, *stream, kLabelsMagic, 1);
  std::vector<std::uint8_t> labels = read_payload(path, *stream, 8, sizes[0]);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] >= num_classes) {
      throw FileError(fmt::format("{}: label {} is {}; expected 0 to {}; fetch the file again",
                                  path.string(), i, labels[i], num_classes - 1));
    }
  }
  return labels;
}

namespace {

constexpr int kMnistClasses = 10;

// Finds a file by `stem` and `rank`, such as "train-images" and "idx3-ubyte"; some archives join
// them by a dot.
std::filesystem::path find_idx_file(const std::filesystem::path& dir, const std::string& stem,
                                    const std::string& rank) {
  for (const char* joint : {"-", "."}) {
    if (const auto path = find_packed(dir, stem + joint + rank)) return *path;
  }
  throw UsageError("mnist: " + dir.string() + " has no " + stem + "-" + rank +
                   " (nor with .gz); expected the four IDX files of "
                   "https://ossci-datasets.s3.amazonaws.com/mnist/ there");
}

std::unique_ptr<Dataset> open_split(const std::filesystem::path& dir, const std::string& split) {
  const std::filesystem::path images_path = find_idx_file(dir, split + "-images", "idx3-ubyte");
  const std::filesystem::path labels_path = find_idx_file(dir, split + "-labels", "idx1-ubyte");
  IdxImages images = read_idx_images(images_path);
  std::vector<std::uint8_t> labels = read_idx_labels(labels_path, kMnistClasses);
  if (static_cast<std::int64_t>(labels.size()) != images.count) {
    throw FileError(fmt::format(
        "{} holds {} images but {} holds {} labels; expected as many; fetch both files again",
        images_path.string(), images.count, labels_path.string(), labels.size()));
  }
  return make_memory_dataset(make_sample_block(std::move(images.pixels), std::move(labels)),
                             {images.rows, images.columns, 1}, kMnistClasses);
}

}  // namespace

DataSplits open_mnist(std::string_view folder, const DataOptions& /*options*/) {
  check_is_folder("mnist", folder);
  DataSplits splits{.name = "mnist",
                    .train = open_split(folder, "train"),
                    .test = open_split(folder, "t10k"),
                    .mean = {0.1307F},
                    .stddev = {0.3081F},
                    .suits_crop_flip = false};
  const Shape& train = splits.train->spec().inputs[0].shape;
  const Shape& test = splits.test->spec().inputs[0].shape;
  if (train != test) {
    throw FileError("mnist: " + std::string(folder) + " has training images of " +
                    to_string(train) + " and test images of " + to_string(test) +
                    "; expected the same shape");
  }
  return splits;
}

}  // namespace syncopate
