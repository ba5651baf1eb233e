#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <limits>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "models/base/errors.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {

static_assert(std::endian::native == std::endian::little, "files are little-endian, as memory is");

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLengthBytes = sizeof(std::uint64_t);
// The size of the largest header that the safetensors format allows.
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
constexpr const char* kExpected =
    "a checkpoint of syncopate train, such as DIR/checkpoint-000000001234.safetensors, or, for "
    "--init-from, another safetensors file";
constexpr std::string_view kChecksumKey = "\"checksum\":\"";
constexpr std::size_t kChecksumDigits = 8;

// Returns the bits of a tensor of this shape; the largest number when the product overflows.
std::uint64_t bits_of(const Shape& shape, std::uint64_t element_bits) {
  constexpr std::uint64_t kTooMany = std::numeric_limits<std::uint64_t>::max();
  // An extent of 0 makes the product 0, whatever the other extents are.
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::uint64_t bits = element_bits;
  for (const std::int64_t extent : shape) {
    const auto factor = static_cast<std::uint64_t>(extent);
    if (bits > kTooMany / factor) return kTooMany;
    bits *= factor;
  }
  return bits;
}

// Returns a number of the header; nothing but a number below 2^61 is one. The JSON value is not
// printed: it may have a million levels, and printing is recursive.
std::uint64_t count_of(const Json& json, const char* what) {
  constexpr int kMostBits = 61;  // so that a count of bytes is one of bits, too
  if (!json.is_number_unsigned()) {
    throw std::invalid_argument(std::string(what) + " that is no count");
  }
  const auto count = json.get<std::uint64_t>();
  if (count >> kMostBits != 0) {
    throw std::invalid_argument(fmt::format("{} of {}, expected less than 2^61", what, count));
  }
  return count;
}

TensorEntry parse_entry(const std::string& name, const Json& json) {
  TensorEntry entry;
  entry.name = name;
  entry.dtype = json.at("dtype").get<std::string>();
  const ElementType* type = find_element_type(entry.dtype);
  if (type == nullptr) throw std::invalid_argument("unknown dtype \"" + entry.dtype + "\"");
  const Json& shape = json.at("shape");
  if (!shape.is_array()) throw std::invalid_argument("a shape that is no list");
  for (const Json& extent : shape) {
    entry.shape.push_back(static_cast<std::int64_t>(count_of(extent, "an extent")));
  }
  const Json& offsets = json.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2) {
    throw std::invalid_argument("data_offsets that are no two numbers");
  }
  entry.begin = count_of(offsets.at(0), "an offset");
  entry.end = count_of(offsets.at(1), "an offset");
  const std::uint64_t bits = bits_of(entry.shape, type->bits);
  if (entry.end < entry.begin || bits % 8 != 0 || entry.end - entry.begin != bits / 8) {
    throw std::invalid_argument(fmt::format("{} of shape {} at bytes {} to {}", entry.dtype,
                                            to_string(entry.shape), entry.begin, entry.end));
  }
  return entry;
}

}  // namespace

void SafetensorsReader::damaged(std::uint64_t offset, const std::string& why) const {
  throw DamagedFileError(
      fmt::format("{} {} is damaged: byte {}: {}", what_, path_.string(), offset, why));
}

void SafetensorsReader::cut_short(std::uint64_t expected, std::uint64_t found) const {
  throw DamagedFileError(fmt::format("{} {} is cut short: expected at least {} bytes, found {}",
                                     what_, path_.string(), expected, found));
}

SafetensorsReader::SafetensorsReader(std::filesystem::path path, std::string what)
    : path_(std::move(path)),
      what_(std::move(what)),
      file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!file_) {
    throw FileError(describe_errno("open " + what_, path_.string(), errno) + "; expected " +
                    kExpected);
  }
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) {
    throw FileError(describe_errno("open " + what_, path_.string(), errno));
  }
  if (!S_ISREG(status.st_mode)) {
    throw FileError(
        fmt::format("open {} {}: not a file; expected {}", what_, path_.string(), kExpected));
  }
  file_size_ = static_cast<std::uint64_t>(status.st_size);
  if (file_size_ < kLengthBytes) cut_short(kLengthBytes, file_size_);
  std::uint64_t length = 0;
  read_bytes(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kLongestHeader) {
    throw DamagedFileError(
        fmt::format("{} {} is damaged or no safetensors file: bytes 0 to 7 give a header of {} "
                    "bytes, expected at most {}",
                    what_, path_.string(), length, kLongestHeader));
  }
  if (kLengthBytes + length > file_size_) cut_short(kLengthBytes + length, file_size_);
  header_.resize(length);
  read_bytes(kLengthBytes, std::as_writable_bytes(std::span(header_)));
  parse_header();
}

std::uint64_t SafetensorsReader::byte_of(const std::string& name) const {
  const std::size_t found = header_.find('"' + name + '"');
  return kLengthBytes + (found == std::string::npos ? 0 : found);
}

void SafetensorsReader::parse_header() {
  Json json;
  try {
    json = Json::parse(header_);
  } catch (const Json::parse_error& error) {
    damaged(kLengthBytes + error.byte, "its header is not JSON");
  } catch (const Json::exception& error) {  // such as a number beyond the range of a double
    damaged(kLengthBytes, std::string("its header is not JSON: ") + error.what());
  }
  if (!json.is_object()) damaged(kLengthBytes, "its header is not a JSON object");
  for (const auto& [name, value] : json.items()) {
    try {
      if (name == "__metadata__") {
        metadata_ = value.get<FileMetadata>();
      } else {
        tensors_.push_back(parse_entry(name, value));
      }
    } catch (const std::exception& error) {
      damaged(byte_of(name), "the header's entry '" + name + "': " + error.what());
    }
  }
  const auto place = [](const TensorEntry& entry) { return std::pair(entry.begin, entry.end); };
  std::sort(tensors_.begin(), tensors_.end(),
            [&](const TensorEntry& a, const TensorEntry& b) { return place(a) < place(b); });
  const std::uint64_t data = kLengthBytes + header_.size();
  std::uint64_t end = 0;
  for (const TensorEntry& entry : tensors_) {
    if (entry.begin != end) {
      damaged(data + entry.begin, "tensor " + entry.name + " does not follow the last");
    }
    end = entry.end;
  }
  const std::uint64_t found = file_size_ - data;
  if (end > found) cut_short(data + end, file_size_);
  if (end < found) {
    damaged(data + end, fmt::format("{} bytes follow the last tensor", found - end));
  }
}

const TensorEntry* SafetensorsReader::find(std::string_view name) const noexcept {
  for (const TensorEntry& entry : tensors_) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

void SafetensorsReader::read_bytes(std::uint64_t offset, std::span<std::byte> bytes) const {
  const std::size_t got = read_all_at(file_, offset, bytes);
  if (got == bytes.size()) return;
  if (errno != 0) throw FileError(describe_errno("read " + what_, path_.string(), errno));
  cut_short(offset + bytes.size(), offset + got);
}

void SafetensorsReader::verify_checksum() const {
  const auto extend = [](std::uint32_t checksum, std::span<const std::byte> bytes) {
    return static_cast<std::uint32_t>(
        crc32_z(checksum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  };
  // A file's checksum is computed over a header with zero in the checksum field.
  std::string header = header_;
  const std::size_t key = header.find(kChecksumKey);
  if (key == std::string::npos || key + kChecksumKey.size() + kChecksumDigits > header.size()) {
    damaged(kLengthBytes, "its header has no checksum");
  }
  const std::string expected = header.substr(key + kChecksumKey.size(), kChecksumDigits);
  header.replace(key + kChecksumKey.size(), kChecksumDigits, kChecksumDigits, '0');
  std::uint32_t checksum = extend(0, std::as_bytes(std::span(header)));

  std::vector<std::byte> chunk(kChunkBytes);
  for (std::uint64_t offset = kLengthBytes + header.size(); offset < file_size_;) {
    const std::span<std::byte> bytes(chunk.data(), std::min(kChunkBytes, file_size_ - offset));
    read_bytes(offset, bytes);
    checksum = extend(checksum, bytes);
    offset += bytes.size();
  }
  std::uint32_t stored = 0;
  const auto [last, error] =
      std::from_chars(expected.data(), expected.data() + expected.size(), stored, 16);
  if (error != std::errc{} || last != expected.data() + expected.size() || stored != checksum) {
    damaged(kLengthBytes + key, "its checksum does not match its bytes");
  }
}

void SafetensorsReader::read(const TensorEntry& entry, std::span<float> values) const {
  const ElementType* type = find_element_type(entry.dtype);
  check(type != nullptr, "an entry of this reader");
  if (type->to_f32 == nullptr) {
    throw FileError(fmt::format(
        "{} {}: tensor {} has the type {}, which this program does not read; write it as F32, F16 "
        "or BF16",
        what_, path_.string(), entry.name, entry.dtype));
  }
  const std::uint64_t element_bytes = type->bits / 8;
  check(values.size() * element_bytes == entry.end - entry.begin, "a value per element");
  std::uint64_t offset = kLengthBytes + header_.size() + entry.begin;
  if (entry.dtype == kF32Name) {
    read_bytes(offset, std::as_writable_bytes(values));
    return;
  }
  const std::uint64_t most = kChunkBytes / element_bytes;
  std::vector<std::byte> chunk(std::min<std::uint64_t>(most, values.size()) * element_bytes);
  while (!values.empty()) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(most, values.size()));
    const std::span<std::byte> bytes(chunk.data(), count * element_bytes);
    read_bytes(offset, bytes);
    type->to_f32(bytes, values.first(count));
    values = values.subspan(count);
    offset += bytes.size();
  }
}

}  // namespace syncopate
