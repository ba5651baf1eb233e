// Messages as they look on the wire: u32 "SYNC", u16 protocol version, u16 type, u32 payload
// length, payload; numbers are little-endian. Whoever speaks something else is found out by its
// first eight bytes. What the types mean is the business of those who talk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace syncopate {

struct Frame {
  std::uint16_t type = 0;
  std::string payload;  // any bytes
};

inline constexpr std::uint32_t kLongestPayload = 64U << 20;
inline constexpr std::uint16_t kProtocolVersion = 1;

// Throws InternalError for a payload longer than kLongestPayload.
std::string encode_frame(const Frame& frame);

// Finds the frames in a stream of bytes that arrives in pieces. One thread only.
class FrameReader {
 public:
  void append(std::string_view bytes);

  // The next whole frame, if there is one. Throws PeerError, which begins with `peer`, for bytes
  // that are no frame of ours and for one that is longer than the limit.
  std::optional<Frame> next(std::string_view peer);

  bool empty() const noexcept { return begin_ == bytes_.size(); }
  void limit_payload(std::uint32_t bytes) noexcept { longest_ = bytes; }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // what lies before has been handed out
  std::uint32_t longest_ = kLongestPayload;
};

}  // namespace syncopate
