#include "ps/net/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "models/base/errors.h"

namespace syncopate {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian");

constexpr std::string_view kMagic = "SYNC";
constexpr std::size_t kHeaderBytes = 12;

template <typename T>
void put(std::string& bytes, T value) {
  const auto* first = reinterpret_cast<const char*>(&value);
  bytes.append(first, sizeof value);
}

template <typename T>
T get(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// "47 45 54 20"
std::string as_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    if (!text.empty()) text += ' ';
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

}  // namespace

std::string encode_frame(const Frame& frame) {
  check(frame.payload.size() <= kLongestPayload, "a frame's payload is longer than 64 MiB");
  std::string bytes;
  bytes.reserve(kHeaderBytes + frame.payload.size());
  bytes += kMagic;
  put(bytes, kProtocolVersion);
  put(bytes, frame.type);
  put(bytes, static_cast<std::uint32_t>(frame.payload.size()));
  return bytes += frame.payload;
}

void FrameReader::append(std::string_view bytes) {
  bytes_.erase(0, begin_);
  begin_ = 0;
  bytes_ += bytes;
}

std::optional<Frame> FrameReader::next(std::string_view peer) {
  const std::string_view bytes = std::string_view(bytes_).substr(begin_);
  const std::size_t seen = std::min(bytes.size(), kMagic.size());
  if (bytes.substr(0, seen) != kMagic.substr(0, seen)) {
    throw PeerError(std::string(peer) + ": it does not speak our protocol (its first bytes are: " +
                    as_hex(bytes.substr(0, 8)) + "); is another program using this port?");
  }
  if (bytes.size() >= 6) {
    if (const auto version = get<std::uint16_t>(bytes, 4); version != kProtocolVersion) {
      throw PeerError(std::string(peer) + ": it speaks version " + std::to_string(version) +
                      " of our protocol, this program version " + std::to_string(kProtocolVersion) +
                      "; start the same syncopate everywhere");
    }
  }
  if (bytes.size() < kHeaderBytes) return std::nullopt;
  const auto length = get<std::uint32_t>(bytes, 8);
  if (length > longest_) {
    throw PeerError(std::string(peer) + ": it announced a message of " + std::to_string(length) +
                    " bytes, expected at most " + std::to_string(longest_));
  }
  if (bytes.size() < kHeaderBytes + length) return std::nullopt;
  Frame frame{get<std::uint16_t>(bytes, 6), std::string(bytes.substr(kHeaderBytes, length))};
  begin_ += kHeaderBytes + length;
  return frame;
}

}  // namespace syncopate
