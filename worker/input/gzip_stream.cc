// gzip through zlib's inflate and not its gz* calls, which take trailing garbage for the end of the
// file. Source: RFC 1952 (members may follow one another).
#include <zlib.h>

#include <algorithm>
#include <array>
#include <string>

#include "models/base/errors.h"
#include "worker/input/packed_streams.h"

namespace syncopate {
namespace {

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
      // avail_out has 32 bits.
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
  bool in_member_ = true;  // an empty file is cut short, too
};

}  // namespace

std::unique_ptr<ByteStream> open_gzip_stream(const std::filesystem::path& path) {
  return std::make_unique<GzipStream>(path);
}

}  // namespace syncopate
