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

inline constexpr std::uint16_t kProtocol = 5;
inline constexpr std::size_t kLongestHeader = std::size_t{1} << 20;
// The limit of a frame of raw bytes, in bytes. The same limit holds for the headers that contain
// data of every variable or worker: Hello and Declared (declaration), Exchanged (texts),
// SnapshotDone and Assignment (staleness counts).
inline constexpr std::size_t kLongestFrame = std::size_t{64} << 20;

// The snapshot number with which a ReadSnapshot message asks for the current values. A worker may
// send such a message only while no update is under way.
inline constexpr std::uint64_t kLiveSnapshot = 0;

// Returns a message of this protocol version with the given body. BodyT is the type of a message
// body, such as PushT.
template <typename BodyT>
MessageT make_message(BodyT body) {
  MessageT message;
  message.protocol = kProtocol;
  message.body.Set(std::move(body));
  return message;
}

// Encodes a header. Throws InternalError for a message without a body, or with more bytes than the
// limit of its kind.
std::vector<std::byte> encode(const MessageT& message);

// Verifies and decodes a header, in memory of any alignment. If the bytes are not a valid header,
// returns nullopt and sets `problem` to a text such as "a header of 12 bytes that is invalid" or
// "protocol 5, expected 4". The decoded message takes memory in proportion to the bytes, and has a
// body and a known codec. The caller must check that the FlatBuffers tables inside the body are
// present and that numbers are in range.
std::optional<MessageT> decode(std::span<const std::byte> header, std::string* problem = nullptr);

// Returns the protocol number of a header that another version of this program sent; nullopt for
// other bytes.
std::optional<std::uint16_t> other_protocol(std::span<const std::byte> header);

// Returns the kind of the message as text, such as "Push".
std::string_view name_of(const MessageT& message) noexcept;

}  // namespace syncopate::ps::wire
