#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "models/base/errors.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {

static_assert(std::endian::native == std::endian::little, "files are little-endian, as memory is");

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLengthBytes = sizeof(std::uint64_t);
// The format's own limit: a longer header is not one.
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::string_view kChecksumKey = "\"checksum\":\"";
constexpr std::size_t kChecksumDigits = 8;

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& why) {
  throw DamagedFileError("checkpoint " + path.string() + " is damaged: " + why);
}

[[noreturn]] void cut_short(const std::filesystem::path& path, std::uint64_t expected,
                            std::uint64_t found) {
  throw DamagedFileError("checkpoint " + path.string() + " is cut short: expected at least " +
                         std::to_string(expected) + " bytes, found " + std::to_string(found));
}

// Bytes of a f32 tensor, or more than any file has when the product overflows.
std::uint64_t f32_bytes(const Shape& shape) {
  constexpr std::uint64_t kTooMany = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes = sizeof(float);
  for (const std::int64_t extent : shape) {
    const auto factor = static_cast<std::uint64_t>(extent);
    if (factor != 0 && bytes > kTooMany / factor) return kTooMany;
    bytes *= factor;
  }
  return bytes;
}

TensorEntry parse_entry(const std::string& name, const Json& json) {
  if (json.at("dtype") != "F32") {
    throw std::invalid_argument("dtype " + json.at("dtype").dump() + ", expected \"F32\"");
  }
  TensorEntry entry;
  entry.name = name;
  for (const Json& extent : json.at("shape")) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() >> 62 != 0) {
      throw std::invalid_argument("an extent of " + extent.dump());
    }
    entry.shape.push_back(extent.get<std::int64_t>());
  }
  const Json& offsets = json.at("data_offsets");
  if (offsets.size() != 2 || !offsets.at(0).is_number_unsigned() ||
      !offsets.at(1).is_number_unsigned()) {
    throw std::invalid_argument("offsets " + offsets.dump());
  }
  entry.begin = offsets.at(0).get<std::uint64_t>();
  entry.end = offsets.at(1).get<std::uint64_t>();
  if (entry.end < entry.begin || entry.end - entry.begin != f32_bytes(entry.shape)) {
    throw std::invalid_argument("shape " + to_string(entry.shape) + " at offsets " +
                                offsets.dump());
  }
  return entry;
}

}  // namespace

SafetensorsReader::SafetensorsReader(std::filesystem::path path)
    : path_(std::move(path)), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!file_) throw FileError(describe_errno("open checkpoint", path_.string(), errno));
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) {
    throw FileError(describe_errno("open checkpoint", path_.string(), errno));
  }
  if (!S_ISREG(status.st_mode)) {
    throw FileError("open checkpoint " + path_.string() + ": expected a file");
  }
  file_size_ = static_cast<std::uint64_t>(status.st_size);
  if (file_size_ < kLengthBytes) cut_short(path_, kLengthBytes, file_size_);
  std::uint64_t length = 0;
  read_bytes(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kLongestHeader) {
    damaged(path_, "its header would have " + std::to_string(length) + " bytes");
  }
  if (kLengthBytes + length > file_size_) cut_short(path_, kLengthBytes + length, file_size_);
  header_.resize(length);
  read_bytes(kLengthBytes, std::as_writable_bytes(std::span(header_)));
  parse_header();
}

void SafetensorsReader::parse_header() {
  const Json json = Json::parse(header_, nullptr, false);
  if (!json.is_object()) damaged(path_, "its header is not a JSON object");
  for (const auto& [name, value] : json.items()) {
    try {
      if (name == "__metadata__") {
        metadata_ = value.get<FileMetadata>();
      } else {
        tensors_.push_back(parse_entry(name, value));
      }
    } catch (const std::exception& error) {
      damaged(path_, "the header's entry '" + name + "': " + error.what());
    }
  }
  const auto place = [](const TensorEntry& entry) { return std::pair(entry.begin, entry.end); };
  std::sort(tensors_.begin(), tensors_.end(),
            [&](const TensorEntry& a, const TensorEntry& b) { return place(a) < place(b); });
  std::uint64_t end = 0;
  for (const TensorEntry& entry : tensors_) {
    if (entry.begin != end) damaged(path_, "tensor " + entry.name + " does not follow the last");
    end = entry.end;
  }
  const std::uint64_t found = file_size_ - kLengthBytes - header_.size();
  if (end > found) cut_short(path_, kLengthBytes + header_.size() + end, file_size_);
  if (end < found) damaged(path_, std::to_string(found - end) + " bytes follow the last tensor");
}

const TensorEntry* SafetensorsReader::find(std::string_view name) const noexcept {
  for (const TensorEntry& entry : tensors_) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

void SafetensorsReader::read_bytes(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count =
        ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw FileError(describe_errno("read checkpoint", path_.string(), errno));
    if (count == 0) cut_short(path_, offset + bytes.size(), offset);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void SafetensorsReader::verify_checksum() const {
  const auto sum = [](std::uint32_t checksum, std::span<const std::byte> bytes) {
    return static_cast<std::uint32_t>(
        crc32_z(checksum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  };
  // It was summed over a header whose checksum read zero.
  std::string header = header_;
  const std::size_t key = header.find(kChecksumKey);
  if (key == std::string::npos || key + kChecksumKey.size() + kChecksumDigits > header.size()) {
    damaged(path_, "its header has no checksum");
  }
  const std::string expected = header.substr(key + kChecksumKey.size(), kChecksumDigits);
  header.replace(key + kChecksumKey.size(), kChecksumDigits, kChecksumDigits, '0');
  std::uint32_t checksum = sum(0, std::as_bytes(std::span(header)));

  constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
  std::vector<std::byte> chunk(kChunkBytes);
  for (std::uint64_t offset = kLengthBytes + header.size(); offset < file_size_;) {
    const std::span<std::byte> bytes(chunk.data(), std::min(kChunkBytes, file_size_ - offset));
    read_bytes(offset, bytes);
    checksum = sum(checksum, bytes);
    offset += bytes.size();
  }
  std::uint32_t stored = 0;
  const auto [last, error] =
      std::from_chars(expected.data(), expected.data() + expected.size(), stored, 16);
  if (error != std::errc{} || last != expected.data() + expected.size() || stored != checksum) {
    damaged(path_, "its checksum does not match its bytes");
  }
}

void SafetensorsReader::read(const TensorEntry& entry, std::span<float> values) const {
  check(values.size_bytes() == entry.end - entry.begin, "as many values as the entry has");
  read_bytes(kLengthBytes + header_.size() + entry.begin, std::as_writable_bytes(values));
}

}  // namespace syncopate
