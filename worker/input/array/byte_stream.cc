#include "worker/input/array/byte_stream.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>

#include "models/base/errors.h"
#include "models/base/unique_handle.h"

namespace syncopate {

namespace {

// Reads the bytes of a file without unpacking. Errors name the file.
class FileSource {
 public:
  explicit FileSource(const std::filesystem::path& path);
  // Reads bytes; returns fewer than asked for only at the end of the file. Throws FileError.
  std::size_t read(std::span<std::uint8_t> target);
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  std::ifstream file_;
};

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

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(const std::filesystem::path& path) : source_(path) {}
  std::size_t read(std::span<std::uint8_t> target) override { return source_.read(target); }

 private:
  FileSource source_;
};

// Unpacks gzip with inflate of zlib; its gz* functions accept garbage at the end of a file. Source:
// RFC 1952 (a file may have several members).
class GzipStream final : public ByteStream {
 public:
  explicit GzipStream(const std::filesystem::path& path) : source_(path) {
    constexpr int kGzipHeader = 16;  // zlib: added to the window bits
    check(inflateInit2(&inflate_, MAX_WBITS + kGzipHeader) == Z_OK, "zlib: inflateInit2 failed");
  }
  ~GzipStream() override { inflateEnd(&inflate_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  std::size_t read(std::span<std::uint8_t> target) override {
    std::size_t done = 0;
    while (done < target.size()) {
      if (inflate_.avail_in == 0) refill();
      if (inflate_.avail_in == 0) {
        if (in_member_) throw damaged("is cut short");
        break;
      }
      in_member_ = true;
      // Limits the bytes per call, since zlib's avail_out has 32 bits.
      const std::size_t room = std::min<std::size_t>(target.size() - done, 1U << 30);
      inflate_.next_out = target.data() + done;
      inflate_.avail_out = static_cast<uInt>(room);
      const int code = inflate(&inflate_, Z_NO_FLUSH);
      done += room - inflate_.avail_out;
      if (code == Z_STREAM_END) {
        in_member_ = false;
        check(inflateReset(&inflate_) == Z_OK, "zlib: inflateReset failed");
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        throw damaged(inflate_.msg != nullptr ? std::string("is damaged (") + inflate_.msg + ")"
                                              : "is damaged");
      }
    }
    return done;
  }

 private:
  void refill() {
    inflate_.next_in = packed_.data();
    inflate_.avail_in = static_cast<uInt>(source_.read(packed_));
  }
  FileError damaged(const std::string& how) const {
    return FileError(source_.path() + " " + how +
                     "; expected whole gzip data; fetch the file again");
  }

  FileSource source_;
  std::array<std::uint8_t, 1 << 16> packed_{};
  z_stream inflate_{};
  bool in_member_ = true;  // true at the start, so that an empty file is refused
};

// Unpacks zstd frames, one after another. Source: RFC 8878.
struct ZstdTraits {
  using Type = ZSTD_DCtx*;
  static Type none() { return nullptr; }
  static void close(Type context) noexcept { ZSTD_freeDCtx(context); }
};

class ZstdStream final : public ByteStream {
 public:
  explicit ZstdStream(const std::filesystem::path& path)
      : source_(path), context_(ZSTD_createDCtx()) {
    check(static_cast<bool>(context_), "zstd: no decompression context");
    // The window of a frame: 64 MiB, twice a CIFAR-10 file. A frame that needs more is refused.
    constexpr int kLargestWindowLog = 26;
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kLargestWindowLog);
  }

  std::size_t read(std::span<std::uint8_t> target) override {
    ZSTD_outBuffer out{target.data(), target.size(), 0};
    while (out.pos < out.size) {
      if (in_.pos == in_.size) in_ = {packed_.data(), source_.read(packed_), 0};
      const bool at_end = in_.size == 0;
      if (at_end && !in_frame_) break;
      const std::size_t before = out.pos;
      const std::size_t hint = ZSTD_decompressStream(context_.get(), &out, &in_);
      if (ZSTD_isError(hint) != 0) {
        throw damaged(std::string("is damaged (") + ZSTD_getErrorName(hint) + ")");
      }
      in_frame_ = hint != 0;
      // Without input the zstd decoder may still flush its output; if it does not, data is missing.
      if (at_end && in_frame_ && out.pos == before) throw damaged("is cut short");
    }
    return out.pos;
  }

 private:
  FileError damaged(const std::string& how) const {
    return FileError(source_.path() + " " + how +
                     "; expected whole zstd data; fetch the file again");
  }

  FileSource source_;
  UniqueHandle<ZstdTraits> context_;
  std::array<std::uint8_t, 1 << 16> packed_{};
  ZSTD_inBuffer in_{packed_.data(), 0, 0};
  bool in_frame_ = true;  // true at the start, so that an empty file is refused
};

}  // namespace

std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& path) {
  if (path.extension() == ".gz") return open_byte_stream(path, Packing::kGzip);
  if (path.extension() == ".zst") return open_byte_stream(path, Packing::kZstd);
  return open_byte_stream(path, Packing::kNone);
}

std::unique_ptr<ByteStream> open_byte_stream(const std::filesystem::path& path, Packing packing) {
  if (std::filesystem::is_directory(path)) {
    throw FileError(path.string() + " is a folder; expected a file");
  }
  if (packing == Packing::kGzip) return std::make_unique<GzipStream>(path);
  if (packing == Packing::kZstd) return std::make_unique<ZstdStream>(path);
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

std::size_t read_up_to_end(const FileDescriptor& file, const std::string& path,
                           std::uint64_t offset, std::span<std::byte> target) {
  const std::size_t got = read_all_at(file, offset, target);
  if (got == target.size() || errno == 0) return got;
  throw FileError(describe_errno(fmt::format("read byte {} of", offset + got), path, errno));
}

std::optional<std::filesystem::path> find_packed(const std::filesystem::path& dir,
                                                 const std::string& name) {
  for (const char* suffix : {"", ".gz", ".zst"}) {
    const std::filesystem::path path = dir / (name + suffix);
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::status(path, error);
    if (std::filesystem::is_regular_file(status))
      return path;  // opening the path reports a file that cannot be read
    if (error && status.type() != std::filesystem::file_type::not_found) {
      throw FileError("read " + path.string() + ": " + error.message());
    }
    // A dangling link is an error, not an absent file.
    if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
      throw FileError(path.string() + ": expected a file, found " +
                      (std::filesystem::exists(status) ? "something else" : "a link to nothing"));
    }
  }
  return std::nullopt;
}

}  // namespace syncopate
