// The first frame of every message is a FlatBuffers header. This file encodes such headers, and
// verifies and decodes received ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ps/wire/messages_generated.h"

namespace syncopate::ps::wire {

inline constexpr std::uint16_t kProtocol = 4;
inline constexpr std::size_t kLongestHeader = std::size_t{1} << 20;
// The limit in bytes of a frame of raw bytes. Also the limit of a header with data of every
// variable or worker: Hello and Declared (declaration), Exchanged (texts), SnapshotDone and
// Assignment (staleness counts).
inline constexpr std::size_t kLongestFrame = std::size_t{64} << 20;

// The snapshot number of a ReadSnapshot that asks for the current values. The worker must know that
// no update is under way.
inline constexpr std::uint64_t kLiveSnapshot = 0;

// Returns a message of this protocol version with the given body. BodyT: PushT, ValuesT, ...
template <typename BodyT>
MessageT make_message(BodyT body) {
  MessageT message;
  message.protocol = kProtocol;
  message.body.Set(std::move(body));
  return message;
}

// Encodes a header. Throws InternalError for a message without a body or beyond its kind's limit.
std::vector<std::byte> encode(const MessageT& message);

// Verifies the bytes of a header in depth and decodes them; no alignment is needed. Returns nothing
// and sets `problem` when they are not a valid header, such as "a header of 12 bytes that is
// invalid" or "protocol 5, expected 4". The decoded message takes memory in proportion to the
// bytes, and has a body and a known codec. Any table inside the body may be missing and any number
// may be out of range: the caller checks.
std::optional<MessageT> decode(std::span<const std::byte> header, std::string* problem = nullptr);

// Returns the protocol of a header of another version of this program; nothing for other bytes.
std::optional<std::uint16_t> other_protocol(std::span<const std::byte> header);

// Returns the kind of the message as text, such as "Push".
std::string_view name_of(const MessageT& message) noexcept;

}  // namespace syncopate::ps::wire
