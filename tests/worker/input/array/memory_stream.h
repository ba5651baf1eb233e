// A stream of bytes in memory, for tests and fuzzers of parsers.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "worker/input/array/byte_stream.h"

namespace syncopate {

class MemoryStream final : public ByteStream {
 public:
  explicit MemoryStream(std::string_view bytes) : bytes_(bytes) {}  // must outlive the stream

  std::size_t read(std::span<std::uint8_t> target) override {
    const std::size_t count = std::min(target.size(), bytes_.size());
    if (count > 0) std::memcpy(target.data(), bytes_.data(), count);
    bytes_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view bytes_;
};

}  // namespace syncopate
