// Tests malicious headers: decoding reads no byte outside of the header, and takes memory and time
// in proportion to its size.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "models/base/deadline.h"
#include "ps/wire/message.h"
#include "tests/ps/wire/sample_messages.h"

namespace syncopate::ps::wire {
namespace {

using Bytes = std::vector<std::byte>;

// RandomNumbers draws random numbers by xorshift, which is fast; the numbers do not depend on the
// order of the tests.
class RandomNumbers {
 public:
  std::uint64_t below(std::uint64_t limit) {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return state_ % limit;
  }

 private:
  std::uint64_t state_ = 88172645463325252U;
};

std::vector<Bytes> sample_headers() {
  std::vector<Bytes> headers;
  for (const MessageT& message : sample_messages()) headers.push_back(encode(message));
  return headers;
}

// Expects that a decoded message takes memory in proportion to its header. The measure is the size
// of its encoding, which is about the size of the objects.
void expect_in_proportion(const MessageT& message, std::size_t header_bytes) {
  const std::size_t again = encode(message).size();
  // The encoding may be larger than the header: an absent vector decodes as an empty one, and a
  // shared string as two strings.
  ASSERT_LE(again, 4 * header_bytes + 4096) << name_of(message);
}

void mutate(Bytes& header, RandomNumbers& random) {
  for (std::uint64_t changes = 1 + random.below(4); changes > 0; --changes) {
    const std::size_t at = random.below(header.size());
    switch (random.below(8)) {
      case 0:  // flips a bit of the header
      case 1:
        header[at] ^= std::byte{1} << random.below(8);
        break;
      case 2:  // changes a byte of the header
      case 3:
        header[at] = std::byte(random.below(2) == 0 ? 0xFF : random.below(256));
        break;
      case 4:  // changes an offset or a length, to a small or to any number
      case 5:
      case 6: {
        if (at + 4 > header.size()) break;
        const auto value = static_cast<std::uint32_t>(
            random.below(2) == 0 ? random.below(2 * header.size()) : random.below(~0U));
        std::memcpy(header.data() + at / 4 * 4, &value, 4);
        break;
      }
      default:  // cuts the end of the header off
        header.resize(std::max<std::size_t>(1, at));
    }
  }
}

TEST(RandomBytes, AreNotAHeader) {
  RandomNumbers random;
  for (int i = 0; i < 100000; ++i) {
    Bytes bytes(random.below(200));
    for (std::byte& byte : bytes) byte = std::byte(random.below(256));
    // Half of the random byte strings begin with the file identifier, to get past the first check.
    if (i % 2 == 0 && bytes.size() >= 8) std::memcpy(bytes.data() + 4, MessageIdentifier(), 4);
    ASSERT_FALSE(decode(bytes));
  }
}

TEST(AMillionMutatedHeaders, AreRefusedOrDecodedInBoundedTimeAndMemory) {
  const std::vector<Bytes> headers = sample_headers();
  RandomNumbers random;
  // A million headers take one second to decode; ten times as long under a sanitizer.
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  std::int64_t decoded = 0;
  Bytes header;
  for (int i = 0; i < 1000000; ++i) {
    header = headers[static_cast<std::size_t>(i) % headers.size()];
    mutate(header, random);
    const auto message = decode(header);
    if (!message) continue;
    ++decoded;
    ASSERT_NO_FATAL_FAILURE(expect_in_proportion(*message, header.size()));
  }
  EXPECT_FALSE(deadline.passed());
  // Some mutated headers must still decode, or the test would prove nothing.
  EXPECT_GT(decoded, 100000);
  EXPECT_LT(decoded, 900000);
}

// Returns a header in which every variable refers to one table, whose name is half of the header.
Bytes bomb(std::size_t bytes) {
  flatbuffers::FlatBufferBuilder builder;
  const auto name = builder.CreateString(std::string(bytes / 2, 'x'));
  const auto variable = CreateVariable(builder, name);
  const std::vector<flatbuffers::Offset<Variable>> variables(bytes / 16, variable);
  const auto all = builder.CreateVector(variables);
  const auto declaration = CreateDeclaration(builder, all);
  const auto declared = CreateDeclared(builder, declaration);
  FinishMessageBuffer(builder, CreateMessage(builder, kProtocol, Body::Declared, declared.Union()));
  const auto header = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {header.begin(), header.end()};
}

TEST(HeaderWithRepeatedReferences, IsRefusedBeforeItFillsMemory) {
  const Bytes large = bomb(kLongestHeader - 1000);
  ASSERT_LE(large.size(), kLongestHeader);
  // FlatBuffers' own verification accepts the header, which would decode to 65,536 times half a
  // megabyte.
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(large.data()), large.size());
  ASSERT_TRUE(VerifyMessageBuffer(verifier));
  const Deadline deadline = Deadline::after(std::chrono::seconds(10));
  EXPECT_FALSE(decode(large));
  EXPECT_FALSE(decode(bomb(1000)));
  EXPECT_FALSE(deadline.passed());
}

// FlatBuffers verifies the alignment of the length of a vector, but not of the vector's elements.
TEST(HeaderWithUnalignedNumbers, IsRefused) {
  HelloT hello;
  hello.snapshots = {1, 0, 0};
  Bytes header = encode(make_message(std::move(hello)));
  const auto* body =
      reinterpret_cast<const flatbuffers::Table*>(GetMessage(header.data())->body_as_Hello());
  const std::uint8_t* reference = body->GetAddressOf(Hello::VT_SNAPSHOTS);
  const auto at =
      static_cast<std::size_t>(reference - reinterpret_cast<const std::uint8_t*>(header.data()));
  // When the reference to the vector points four bytes later, the first element is read as the
  // length, and the elements are unaligned.
  header[at] = std::byte(static_cast<std::uint8_t>(header[at]) + 4);
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(header.data()),
                                 header.size());
  ASSERT_TRUE(VerifyMessageBuffer(verifier));
  EXPECT_FALSE(decode(header));
}

}  // namespace
}  // namespace syncopate::ps::wire
