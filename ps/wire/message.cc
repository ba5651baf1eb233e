#include "ps/wire/message.h"

#include <flatbuffers/minireflect.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"

namespace syncopate::ps::wire {
namespace {

// Nesting of tables in a header: message, body, declaration, variable; one more for a future field.
constexpr flatbuffers::uoffset_t kDeepest = 5;
// The least bytes of a FlatBuffers table: one without fields, with the reference to it.
constexpr std::size_t kSmallestTable = 8;
// Checks what FlatBuffers' own verification does not. Offsets may point to one string a hundred
// thousand times, which would decode to gigabytes of objects; and the elements of a vector may be
// unaligned although its length is aligned.
class Inspection final : public flatbuffers::IterationVisitor {
 public:
  // `header_bytes` limits what an Inspection reads: encode() stores no two parts at one place, so
  // all parts of a header together, with structs in vectors counted twice, take at most twice its
  // length.
  explicit Inspection(std::size_t header_bytes) : left_(2 * header_bytes) {}
  struct Failed {};

  void StartSequence() override { take(1); }
  void String(const flatbuffers::String* text) override { take(text->size()); }
  // FlatBuffers calls Field() before it reads the elements of the field.
  void Field(std::size_t /*index*/, std::size_t /*set*/, flatbuffers::ElementaryType type,
             bool is_vector, const flatbuffers::TypeTable* table, const char* /*name*/,
             const std::uint8_t* value) override {
    if (value == nullptr || !is_vector) return;
    const auto* vector = reinterpret_cast<const flatbuffers::Vector<std::uint8_t>*>(
        value + flatbuffers::ReadScalar<flatbuffers::uoffset_t>(value));
    if (reinterpret_cast<std::uintptr_t>(vector->Data()) % alignment(type, table) != 0) {
      throw Failed{};
    }
    take(vector->size() * flatbuffers::InlineSize(type, table));
  }

 private:
  static std::size_t alignment(flatbuffers::ElementaryType type,
                               const flatbuffers::TypeTable* table) {
    if (type != flatbuffers::ET_SEQUENCE) return flatbuffers::InlineSize(type, table);
    if (table == nullptr || table->st != flatbuffers::ST_STRUCT) {
      return sizeof(flatbuffers::uoffset_t);
    }
    std::size_t largest = 1;
    for (std::size_t i = 0; i < table->num_elems; ++i) {
      const auto code = table->type_codes[i];
      const auto* inner = code.sequence_ref < 0 ? nullptr : table->type_refs[code.sequence_ref]();
      largest = std::max(
          largest, alignment(static_cast<flatbuffers::ElementaryType>(code.base_type), inner));
    }
    return largest;
  }

  void take(std::size_t bytes) {
    if (bytes > left_) throw Failed{};
    left_ -= bytes;
  }
  std::size_t left_;
};

bool is_sound(std::span<const std::byte> aligned) {
  Inspection inspection(aligned.size());
  try {
    flatbuffers::IterateFlatBuffer(reinterpret_cast<const std::uint8_t*>(aligned.data()),
                                   MessageTypeTable(), &inspection);
  } catch (const Inspection::Failed&) {
    return false;
  }
  return true;
}

// Reads a number of the header's root table before anything else is verified.
template <typename Number>
std::optional<Number> root_number(const std::uint8_t* data, std::size_t size,
                                  flatbuffers::voffset_t of) {
  flatbuffers::Verifier verifier(data, size, kDeepest, 1);
  if (size <= 2 * sizeof(flatbuffers::uoffset_t) || !MessageBufferHasIdentifier(data)) {
    return std::nullopt;
  }
  const flatbuffers::uoffset_t offset = verifier.VerifyOffset(0);
  if (offset == 0 || !verifier.VerifyTableStart(data + offset)) return std::nullopt;
  const auto* const root = reinterpret_cast<const flatbuffers::Table*>(data + offset);
  const flatbuffers::voffset_t field = root->GetOptionalFieldOffset(of);
  if (field != 0 && !verifier.VerifyField<Number>(data + offset, field, sizeof(Number))) {
    return std::nullopt;
  }
  return root->GetField<Number>(of, 0);
}

// Reads the protocol version. Messages of other versions may differ in everything but this number.
std::optional<std::uint16_t> protocol_of(const std::uint8_t* data, std::size_t size) {
  return root_number<std::uint16_t>(data, size, Message::VT_PROTOCOL);
}

// Returns the largest size in bytes of a header of this kind.
std::size_t longest(Body kind) {
  switch (kind) {
    case Body::Hello:
    case Body::Declared:
    case Body::Exchanged:
    case Body::SnapshotDone:
    case Body::Assignment:
      return kLongestFrame;
    default:
      return kLongestHeader;
  }
}

std::size_t longest(std::span<const std::byte> aligned) {
  const auto kind = root_number<std::uint8_t>(reinterpret_cast<const std::uint8_t*>(aligned.data()),
                                              aligned.size(), Message::VT_BODY_TYPE);
  return longest(static_cast<Body>(kind.value_or(0)));
}

bool is_known(Codec codec) { return codec >= Codec::MIN && codec <= Codec::MAX; }

// Verifies the header in depth. Also rejects headers that FlatBuffers accepts: a missing body, a
// body of an unknown type, an unknown codec.
bool is_valid(std::span<const std::byte> aligned) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(aligned.data());
  const auto most_tables = static_cast<flatbuffers::uoffset_t>(aligned.size() / kSmallestTable);
  flatbuffers::Verifier verifier(data, aligned.size(), kDeepest, most_tables);
  if (!VerifyMessageBuffer(verifier)) return false;
  const Message* message = GetMessage(data);
  if (message->body_type() <= Body::NONE || message->body_type() > Body::MAX) return false;
  if (message->body() == nullptr) return false;
  const Push* push = message->body_as_Push();
  return (push == nullptr || is_known(push->codec())) && is_sound(aligned);
}

// Checks a header. Returns "" for a valid header, else the reason why it is invalid.
std::string problem_of(std::span<const std::byte> aligned) {
  const auto invalid = [&] {
    return fmt::format("a header of {} bytes that is invalid", aligned.size());
  };
  const std::size_t most = aligned.size() > kLongestFrame ? kLongestFrame : longest(aligned);
  if (aligned.size() > most) {
    return fmt::format("a header of {} bytes, expected at most {}", aligned.size(), most);
  }
  const auto protocol =
      protocol_of(reinterpret_cast<const std::uint8_t*>(aligned.data()), aligned.size());
  if (!protocol) return invalid();
  if (*protocol != kProtocol) {
    return fmt::format("protocol {}, expected {}", *protocol, kProtocol);
  }
  return is_valid(aligned) ? "" : invalid();
}

// Copies a header: frames arrive at any address; memory from new is aligned for all of a header.
// Returns nothing for a header that is too long to copy.
std::vector<std::byte> aligned_copy(std::span<const std::byte> header) {
  const std::size_t length = header.size() > kLongestFrame ? 0 : header.size();
  return {header.begin(), header.begin() + static_cast<std::ptrdiff_t>(length)};
}

}  // namespace

std::vector<std::byte> encode(const MessageT& message) {
  check(message.body.type != Body::NONE, "a message has a body");
  flatbuffers::FlatBufferBuilder builder;
  FinishMessageBuffer(builder, Message::Pack(builder, &message));
  const std::size_t most = longest(message.body.type);
  if (builder.GetSize() > most) {
    check(false, fmt::format("a {} of {} bytes, expected at most {}", name_of(message),
                             builder.GetSize(), most));
  }
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

std::optional<MessageT> decode(std::span<const std::byte> header, std::string* problem) {
  const std::vector<std::byte> aligned = aligned_copy(header);
  std::string found = problem_of(aligned.size() == header.size() ? aligned : header);
  const bool is_fine = found.empty();
  if (problem != nullptr) *problem = std::move(found);
  if (!is_fine) return std::nullopt;
  std::optional<MessageT> message(std::in_place);
  GetMessage(aligned.data())->UnPackTo(&*message);
  return message;
}

std::optional<std::uint16_t> other_protocol(std::span<const std::byte> header) {
  constexpr std::size_t kIdentifierEnd = 8;
  const std::vector<std::byte> aligned = aligned_copy(header);
  const auto* const data = reinterpret_cast<const std::uint8_t*>(aligned.data());
  if (aligned.size() < kIdentifierEnd || !MessageBufferHasIdentifier(data)) return std::nullopt;
  const std::optional<std::uint16_t> protocol = protocol_of(data, aligned.size());
  return protocol == kProtocol ? std::nullopt : protocol;
}

std::string_view name_of(const MessageT& message) noexcept {
  return EnumNameBody(message.body.type);
}

}  // namespace syncopate::ps::wire
