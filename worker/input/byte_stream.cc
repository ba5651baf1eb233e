#include "worker/input/byte_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "models/base/errors.h"
#include "worker/input/packed_streams.h"

namespace syncopate {

FileSource::FileSource(const std::filesystem::path& path) : path_(path.string()) {
  errno = 0;
  file_.open(path, std::ios::binary);
  if (!file_) throw FileError(describe_errno("open", path_, errno));
}

std::size_t FileSource::read(std::span<std::uint8_t> target) {
  errno = 0;
  file_.read(reinterpret_cast<char*>(target.data()), static_cast<std::streamsize>(target.size()));
  if (file_.bad() || (file_.fail() && !file_.eof())) {
    throw FileError(describe_errno("read", path_, errno));
  }
  return static_cast<std::size_t>(file_.gcount());
}

namespace {

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(const std::filesystem::path& path) : source_(path) {}
  std::size_t read(std::span<std::uint8_t> target) override { return source_.read(target); }

 private:
  FileSource source_;
};

}  // namespace

std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    throw FileError(path.string() + " is a folder; expected a file");
  }
  if (path.extension() == ".gz") return open_gzip_stream(path);
  if (path.extension() == ".zst") return open_zstd_stream(path);
  return std::make_unique<PlainStream>(path);
}

std::vector<std::uint8_t> read_up_to(ByteStream& stream, std::uint64_t size) {
  constexpr std::uint64_t kFirstStep = 1 << 16;
  std::vector<std::uint8_t> bytes;
  while (bytes.size() < size) {
    const std::size_t old_size = bytes.size();
    const std::uint64_t step = std::max<std::uint64_t>(kFirstStep, old_size);
    bytes.resize(static_cast<std::size_t>(std::min<std::uint64_t>(size, old_size + step)));
    const std::size_t got = stream.read(std::span(bytes).subspan(old_size));
    if (old_size + got < bytes.size()) {
      bytes.resize(old_size + got);
      break;
    }
  }
  return bytes;
}

std::optional<std::filesystem::path> find_packed(const std::filesystem::path& dir,
                                                 const std::string& name) {
  for (const char* suffix : {"", ".gz", ".zst"}) {
    const std::filesystem::path path = dir / (name + suffix);
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (std::filesystem::is_regular_file(status)) return path;  // unreadable: when it is opened
    if (error && status.type() != std::filesystem::file_type::not_found) {
      throw FileError("read " + path.string() + ": " + error.message());
    }
    // A link to nothing is there itself.
    if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
      throw FileError(path.string() + ": expected a file, found " +
                      (std::filesystem::exists(status) ? "something else" : "a link to nothing"));
    }
  }
  return std::nullopt;
}

}  // namespace syncopate
