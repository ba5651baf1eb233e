#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>
#include <nlohmann/json.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "models/base/errors.h"
#include "models/base/file_lock.h"
#include "models/base/replacing_file.h"
#include "ps/net/endpoint.h"
#include "worker/checkpoint/safetensors.h"

namespace syncopate {
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
  require_unclaimed(path_);
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
  if (write_all(file_, bytes) < bytes.size()) fail("write checkpoint", temporary_);
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
  sync_folder_of(path_);
}

}  // namespace syncopate
