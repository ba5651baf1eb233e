// The first frame of every message: a FlatBuffers header, verified before anybody looks at it.
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

inline constexpr std::uint16_t kProtocol = 1;
inline constexpr std::size_t kLongestHeader = std::size_t{1} << 20;
// Of a frame of bytes. Also of a header that has something of every worker: texts, or how stale the
// pushes were (Exchanged, CutDone, Appointment).
inline constexpr std::size_t kLongestFrame = std::size_t{64} << 20;

// In ReadCut: what the shards hold now, for a worker that knows that nobody updates.
inline constexpr std::uint64_t kLiveCut = 0;

// A header with this body, of our protocol. BodyT: PushT, ValuesT, ...
template <typename BodyT>
MessageT make_message(BodyT body) {
  MessageT message;
  message.protocol = kProtocol;
  message.body.Set(std::move(body));
  return message;
}

// Throws InternalError for a message without a body, or one that is longer than its kind may be.
std::vector<std::byte> encode(const MessageT& message);

// Nothing, and then `problem` says why, unless the bytes are a header of ours, verified in depth:
// "a header of 12 bytes that is none of ours", "protocol 2, expected 1". The bytes need no
// alignment. A message of another protocol version is decoded no further.
// What is decoded takes memory in proportion to the bytes. It has a body and known codecs; any
// table inside the body may still be missing, and any number be absurd: the reader checks.
std::optional<MessageT> decode(std::span<const std::byte> header, std::string* problem = nullptr);

// Whether decode() would give something; makes no objects.
bool is_header(std::span<const std::byte> header, std::string* problem = nullptr);

// "Push", for messages.
std::string_view name_of(const MessageT& message) noexcept;

}  // namespace syncopate::ps::wire
