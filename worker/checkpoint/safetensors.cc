#include "worker/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "models/base/errors.h"
#include "ps/net/endpoint.h"

namespace syncopate {

static_assert(std::endian::native == std::endian::little, "files are little-endian, as memory is");

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kLengthBytes = sizeof(std::uint64_t);
// The size of the largest header that the safetensors format allows.
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr const char* kCheckpointAdvice =
    "a checkpoint of syncopate train, such as DIR/checkpoint-000000001234.safetensors";
constexpr std::string_view kChecksumKey = "\"checksum\":\"";
constexpr std::size_t kChecksumDigits = 8;

[[noreturn]] void damaged(const std::filesystem::path& path, const std::string& why) {
  throw DamagedFileError("checkpoint " + path.string() + " is damaged: " + why);
}

[[noreturn]] void cut_short(const std::filesystem::path& path, std::uint64_t expected,
                            std::uint64_t found) {
  throw DamagedFileError(
      fmt::format("checkpoint {} is cut short: expected at least {} bytes, found {}", path.string(),
                  expected, found));
}

// Returns the bytes of an f32 tensor of this shape; the largest number when the product overflows.
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

// The data types of the safetensors format that this program does not read.
constexpr std::array kOtherTypes = {"BOOL", "U8",   "I8",  "F8_E5M2", "F8_E4M3", "I16", "U16",
                                    "F16",  "BF16", "I32", "U32",     "F64",     "I64", "U64"};

TensorEntry parse_entry(const std::filesystem::path& path, const std::string& name,
                        const Json& json) {
  const std::string type = json.at("dtype").get<std::string>();
  if (std::ranges::find(kOtherTypes, type) != kOtherTypes.end()) {
    throw FileError("checkpoint " + path.string() + " was not written by this program: tensor " +
                    name + " has the type " + type +
                    ", expected F32; give a checkpoint of syncopate train");
  }
  if (type != "F32") throw std::invalid_argument("dtype \"" + type + "\", expected \"F32\"");
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
  if (!file_) {
    throw FileError(describe_errno("open checkpoint", path_.string(), errno) + "; expected " +
                    kCheckpointAdvice);
  }
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) {
    throw FileError(describe_errno("open checkpoint", path_.string(), errno));
  }
  if (!S_ISREG(status.st_mode)) {
    throw FileError("open checkpoint " + path_.string() + ": not a file; expected " +
                    kCheckpointAdvice);
  }
  file_size_ = static_cast<std::uint64_t>(status.st_size);
  if (file_size_ < kLengthBytes) cut_short(path_, kLengthBytes, file_size_);
  std::uint64_t length = 0;
  read_bytes(0, std::as_writable_bytes(std::span(&length, 1)));
  if (length > kLongestHeader) {
    throw DamagedFileError(
        fmt::format("checkpoint {} is damaged or no safetensors file: its first 8 bytes give a "
                    "header of {} bytes, expected at most {}",
                    path_.string(), length, kLongestHeader));
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
        tensors_.push_back(parse_entry(path_, name, value));
      }
    } catch (const FileError&) {
      throw;
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
  if (end < found) damaged(path_, fmt::format("{} bytes follow the last tensor", found - end));
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
  // A file's checksum is computed over a header whose checksum field is zero.
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

namespace {

constexpr std::size_t kHeaderAlignment = 8;

std::string hexadecimal(std::uint32_t value) {
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%08x", value);
  return text.data();
}

std::uint32_t extend_checksum(std::uint32_t checksum, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      crc32_z(checksum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

[[noreturn]] void fail(std::string_view action, const std::filesystem::path& path) {
  throw FileError(describe_errno(action, path.string(), errno));
}

// Syncs the folder: the rename of a file is durable only after its folder has been synced.
void sync_folder(const std::filesystem::path& folder) {
  const FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor) fail("open folder", folder);
  // EINVAL means that the file system cannot sync folders.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL) fail("sync folder", folder);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

// Creates the temporary file with the permissions that the umask allows, because it becomes the
// checkpoint; only lock files are writable for every user. The lock marks it as being written.
FileDescriptor open_temporary(const std::filesystem::path& path) {
  constexpr mode_t kBeforeUmask = 0666;
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, kBeforeUmask));
  if (!file) fail("open", path);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw FileError("write checkpoint " + path.string() +
                    ": expected no other writer, but another process has locked the file");
  }
  return file;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, FileMetadata metadata,
                                     std::vector<TensorEntry> tensors)
    : path_(std::move(path)),
      temporary_(
          fmt::format("{}{}{}-{}", path_.string(), kTemporarySuffix, own_host_name(), ::getpid())),
      metadata_(std::move(metadata)),
      tensors_(std::move(tensors)) {
  std::uint64_t offset = 0;
  for (TensorEntry& entry : tensors_) {
    entry.begin = offset;
    offset += static_cast<std::uint64_t>(num_elements(entry.shape)) * sizeof(float);
    entry.end = offset;
  }
  lock_ = open_temporary(temporary_);
  // Removes the temporary file here: the destructor does not run if the constructor throws.
  try {
    file_.reset(::fcntl(lock_.get(), F_DUPFD_CLOEXEC, 0));
    if (!file_ || ::ftruncate(file_.get(), 0) != 0) fail("write checkpoint", temporary_);
    const std::string text = header();
    checksum_ = extend_checksum(0, std::as_bytes(std::span(text)));
    const std::uint64_t length = text.size();
    write(std::as_bytes(std::span(&length, 1)));
    write(std::as_bytes(std::span(text)));
  } catch (...) {
    ::unlink(temporary_.c_str());
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (file_) ::unlink(temporary_.c_str());
}

// The checksum field has a fixed width, so the header can be rewritten in place; the field is zero
// while the checksum is computed.
std::string SafetensorsWriter::header() const {
  nlohmann::ordered_json json;
  nlohmann::ordered_json& metadata = json["__metadata__"];
  metadata["checksum"] = hexadecimal(checksum_);
  for (const auto& [key, value] : metadata_) metadata[key] = value;
  for (const TensorEntry& entry : tensors_) {
    json[entry.name] = {
        {"dtype", "F32"}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return text;
}

void SafetensorsWriter::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write checkpoint", temporary_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void SafetensorsWriter::append(std::span<const float> values) {
  check(next_ < tensors_.size(), "no more tensors than the header has");
  const TensorEntry& entry = tensors_[next_++];
  check(values.size_bytes() == entry.end - entry.begin, "a tensor has the header's size");
  const std::span<const std::byte> bytes = std::as_bytes(values);
  checksum_ = extend_checksum(checksum_, bytes);
  write(bytes);
}

void SafetensorsWriter::commit() {
  check(next_ == tensors_.size(), "every tensor of the header was written");
  const std::string text = header();
  if (::lseek(file_.get(), sizeof(std::uint64_t), SEEK_SET) < 0) {
    fail("write checkpoint", temporary_);
  }
  write(std::as_bytes(std::span(text)));
  if (::fsync(file_.get()) != 0) fail("sync checkpoint", temporary_);
  // Closes the file explicitly: some network file systems report a full disk only here.
  if (::close(file_.release()) != 0 && errno != EINTR) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    throw FileError(describe_errno("close checkpoint", temporary_.string(), error));
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary_.c_str());
    throw FileError(describe_errno("rename checkpoint to", path_.string(), error));
  }
  sync_folder(folder_of(path_));
}

}  // namespace syncopate
