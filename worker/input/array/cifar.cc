// Reads cifar10:DIR and cifar100:DIR, the binary versions of CIFAR-10 and CIFAR-100. Source:
// Krizhevsky, www.cs.toronto.edu/~kriz/cifar.html, "binary version".
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "worker/input/array/byte_stream.h"
#include "worker/input/dataset.h"

namespace syncopate {
namespace {

constexpr std::size_t kChannels = 3;
constexpr std::size_t kPlane = 32 * 32;
constexpr std::size_t kCifarPixels = kChannels * kPlane;
constexpr std::uint64_t kLargestFile = std::uint64_t{3} << 30;  // bytes, unpacked

// Describes one of the two data sets. A record is its labels, one byte each, then the red, green
// and blue planes.
struct CifarLayout {
  std::string_view name;
  std::string_view folder;  // the folder inside the archive
  std::string_view archive;
  std::span<const std::string_view> train_files;
  std::string_view test_file;
  std::size_t train_file_records;  // records of each official training file
  std::span<const int> labels;     // number of classes of each label; the last label is used
  std::vector<float> mean;
  std::vector<float> stddev;

  std::size_t record_bytes() const noexcept { return labels.size() + kCifarPixels; }
};

constexpr std::array<std::string_view, 5> kCifar10Files = {"data_batch_1.bin", "data_batch_2.bin",
                                                           "data_batch_3.bin", "data_batch_4.bin",
                                                           "data_batch_5.bin"};
constexpr std::array<int, 1> kCifar10Labels = {10};
constexpr std::array<std::string_view, 1> kCifar100Files = {"train.bin"};
constexpr std::array<int, 2> kCifar100Labels = {20, 100};  // the coarse and the fine label
constexpr std::size_t kTestRecords = 10000;

struct Records {
  std::vector<std::uint8_t> pixels;
  std::vector<std::uint8_t> labels;
};

std::filesystem::path find_cifar_file(const CifarLayout& layout, const std::filesystem::path& dir,
                                      std::string_view name) {
  for (const std::filesystem::path& place : {dir, dir / layout.folder}) {
    if (const auto path = find_packed(place, std::string(name))) return *path;
  }
  const bool several = layout.train_files.size() > 1;
  throw UsageError(fmt::format(
      "{}: {} has no {} (nor with .gz or .zst); expected {}{} and {} there or in {}, from {}",
      layout.name, dir.string(), name, layout.train_files.front(),
      several ? fmt::format(" to {}", layout.train_files.back()) : "", layout.test_file,
      layout.folder, layout.archive));
}

void append_record(std::span<const std::uint8_t> record, std::size_t num_labels, Records& records) {
  records.labels.push_back(record[num_labels - 1]);
  const std::uint8_t* planes = record.data() + num_labels;
  for (std::size_t i = 0; i < kPlane; ++i) {
    for (std::size_t c = 0; c < kChannels; ++c) records.pixels.push_back(planes[c * kPlane + i]);
  }
}

void append_file(const CifarLayout& layout, const std::filesystem::path& path,
                 std::size_t official_records, Records& records) {
  const std::unique_ptr<ByteStream> stream = open_byte_stream(path);
  const std::vector<std::uint8_t> bytes = read_up_to(*stream, kLargestFile);
  const std::size_t record_bytes = layout.record_bytes();
  if (bytes.empty() || bytes.size() % record_bytes != 0 || bytes.size() == kLargestFile) {
    throw FileError(
        fmt::format("{} holds {} bytes (unpacked); expected whole records of {} bytes, {} in all; "
                    "fetch the file again",
                    path.string(), bytes.size(), record_bytes, official_records * record_bytes));
  }
  const std::size_t count = bytes.size() / record_bytes;
  if (count != official_records) {
    log(LogLevel::kWarning, fmt::format("{} holds {} records; the official file holds {}",
                                        path.string(), count, official_records));
  }
  records.pixels.reserve(records.pixels.size() + count * kCifarPixels);
  for (std::size_t i = 0; i < count; ++i) {
    const auto record = std::span(bytes).subspan(i * record_bytes, record_bytes);
    for (std::size_t label = 0; label < layout.labels.size(); ++label) {
      if (record[label] < layout.labels[label]) continue;
      throw FileError(fmt::format(
          "{}: {}label of record {} (byte {}) is {}; expected 0 to {}; is it the binary version "
          "of {}?",
          path.string(), label + 1 < layout.labels.size() ? "the coarse " : "the ", i,
          i * record_bytes + label, record[label], layout.labels[label] - 1, layout.name));
    }
    append_record(record, layout.labels.size(), records);
  }
}

DataSplits open_cifar(const CifarLayout& layout, std::string_view folder) {
  check_is_folder(layout.name, folder);
  const auto make_split = [&](Records records) {
    return make_memory_dataset(
        make_sample_block(std::move(records.pixels), std::move(records.labels)), {32, 32, 3},
        layout.labels.back());
  };
  Records train;
  for (const std::string_view name : layout.train_files) {
    append_file(layout, find_cifar_file(layout, folder, name), layout.train_file_records, train);
  }
  Records test;
  append_file(layout, find_cifar_file(layout, folder, layout.test_file), kTestRecords, test);
  return {.name = std::string(layout.name),
          .train = make_split(std::move(train)),
          .test = make_split(std::move(test)),
          .mean = layout.mean,
          .stddev = layout.stddev,
          .suits_crop_flip = true};
}

}  // namespace

DataSplits open_cifar10(std::string_view folder, const DataOptions& /*options*/) {
  return open_cifar({.name = "cifar10",
                     .folder = "cifar-10-batches-bin",
                     .archive = "cifar-10-binary.tar.gz",
                     .train_files = kCifar10Files,
                     .test_file = "test_batch.bin",
                     .train_file_records = 10000,
                     .labels = kCifar10Labels,
                     .mean = {0.4914F, 0.4822F, 0.4465F},
                     .stddev = {0.2470F, 0.2435F, 0.2616F}},
                    folder);
}

DataSplits open_cifar100(std::string_view folder, const DataOptions& /*options*/) {
  return open_cifar({.name = "cifar100",
                     .folder = "cifar-100-binary",
                     .archive = "cifar-100-binary.tar.gz",
                     .train_files = kCifar100Files,
                     .test_file = "test.bin",
                     .train_file_records = 50000,
                     .labels = kCifar100Labels,
                     .mean = {0.5071F, 0.4865F, 0.4409F},
                     .stddev = {0.2673F, 0.2564F, 0.2762F}},
                    folder);
}

}  // namespace syncopate
