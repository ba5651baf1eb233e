// Reads cifar10:DIR, the binary version of CIFAR-10. Source: Krizhevsky,
// www.cs.toronto.edu/~kriz/cifar.html, "binary version".
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "worker/input/byte_stream.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

constexpr int kCifarClasses = 10;
constexpr std::size_t kChannels = 3;
constexpr std::size_t kPlane = 32 * 32;
constexpr std::size_t kCifarPixels = kChannels * kPlane;
constexpr std::size_t kRecordBytes =
    1 + kCifarPixels;                            // label, then the red, green and blue planes
constexpr std::size_t kOfficialRecords = 10000;  // number of images in each official file
constexpr std::uint64_t kLargestFile =
    100 * kOfficialRecords * kRecordBytes;  // at most 3 GB may come out of a packed file

struct Records {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

std::filesystem::path find_cifar_file(const std::filesystem::path& dir, const std::string& name) {
  for (const std::filesystem::path& place : {dir, dir / "cifar-10-batches-bin"}) {
    if (const auto path = find_packed(place, name)) return *path;
  }
  throw UsageError("cifar10: " + dir.string() + " has no " + name +
                   " (nor with .gz or .zst); expected data_batch_1.bin to data_batch_5.bin and "
                   "test_batch.bin there or in cifar-10-batches-bin, from cifar-10-binary.tar.gz");
}

void append_record(std::span<const std::uint8_t> record, Records& records) {
  records.labels.push_back(record[0]);
  const std::uint8_t* planes = record.data() + 1;
  for (std::size_t i = 0; i < kPlane; ++i) {
    for (std::size_t c = 0; c < kChannels; ++c) records.pixels.push_back(planes[c * kPlane + i]);
  }
}

void append_file(const std::filesystem::path& path, Records& records) {
  const std::unique_ptr<ByteStream> stream = open_byte_stream(path);
  const std::vector<std::uint8_t> bytes = read_up_to(*stream, kLargestFile);
  if (bytes.empty() || bytes.size() % kRecordBytes != 0 || bytes.size() == kLargestFile) {
    throw FileError(
        fmt::format("{} holds {} bytes (unpacked); expected whole records of {} bytes, 30730000 in "
                    "all; fetch the file again",
                    path.string(), bytes.size(), kRecordBytes));
  }
  const std::size_t count = bytes.size() / kRecordBytes;
  if (count != kOfficialRecords) {
    log(LogLevel::kWarning,
        fmt::format("{} holds {} records; the official files hold 10000", path.string(), count));
  }
  records.pixels.reserve(records.pixels.size() + count * kCifarPixels);
  for (std::size_t i = 0; i < count; ++i) {
    const auto record = std::span(bytes).subspan(i * kRecordBytes, kRecordBytes);
    if (record[0] >= kCifarClasses) {
      throw FileError(fmt::format(
          "{}: the label of record {} is {}; expected 0 to 9; is it CIFAR-10's binary version?",
          path.string(), i, record[0]));
    }
    append_record(record, records);
  }
}

std::unique_ptr<Dataset> make_split(Records records) {
  return make_memory_dataset(
      make_sample_block(std::move(records.pixels), std::move(records.labels)), {32, 32, 3},
      kCifarClasses);
}

}  // namespace

DataSplits open_cifar10(std::string_view folder, const DataOptions& /*options*/) {
  check_is_folder("cifar10", folder);
  Records train;
  for (int i = 1; i <= 5; ++i) {
    append_file(find_cifar_file(folder, fmt::format("data_batch_{}.bin", i)), train);
  }
  Records test;
  append_file(find_cifar_file(folder, "test_batch.bin"), test);
  return {.name = "cifar10",
          .train = make_split(std::move(train)),
          .test = make_split(std::move(test)),
          .mean = {0.4914F, 0.4822F, 0.4465F},
          .stddev = {0.2470F, 0.2435F, 0.2616F},
          .suits_crop_flip = true};
}

}  // namespace syncopate
