// zstd frames, one after another. Source: RFC 8878.
#include <zstd.h>

#include <array>
#include <string>

#include "models/base/errors.h"
#include "models/base/unique_handle.h"
#include "worker/input/packed_streams.h"

namespace syncopate {
namespace {

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
    // 64 MiB: twice a CIFAR-10 file. A frame that asks for more memory is refused, not believed.
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
      // Without input the decoder may still flush what it holds; when it does not, data is missing.
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
  bool in_frame_ = true;  // an empty file is cut short, too
};

}  // namespace

std::unique_ptr<ByteStream> open_zstd_stream(const std::filesystem::path& path) {
  return std::make_unique<ZstdStream>(path);
}

}  // namespace syncopate
