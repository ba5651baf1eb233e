#include "ps/wire/message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "models/base/errors.h"
#include "tests/ps/wire/sample_messages.h"
#include "tests/support/contains.h"

namespace syncopate::ps::wire {
namespace {

using Bytes = std::vector<std::byte>;

std::string problem_with(std::span<const std::byte> header) {
  std::string problem;
  EXPECT_FALSE(decode(header, &problem));
  return problem;
}

TEST(Message, RoundTripsWithEveryKindOfBody) {
  std::set<Body> seen;
  for (const MessageT& message : sample_messages()) {
    const Bytes header = encode(message);
    std::string problem = "none";
    const auto back = decode(header, &problem);
    ASSERT_TRUE(back) << name_of(message) << ": " << problem;
    EXPECT_EQ(problem, "");
    EXPECT_EQ(back->body.type, message.body.type);
    EXPECT_EQ(encode(*back), header) << name_of(message);
    seen.insert(back->body.type);
  }
  for (const Body body : EnumValuesBody()) {
    EXPECT_EQ(seen.contains(body), body != Body::NONE) << EnumNameBody(body) << " has no sample";
  }
}

TEST(Message, KeepsItsFields) {
  PushT push;
  push.bucket = 2;
  push.sequence = std::uint64_t{1} << 63;
  push.learning_rate = 0.1F;
  push.codec = Codec::Bf16;
  push.batches = {SampleRange(1, 64, 128), SampleRange(1, 128, 192)};
  push.stops = {0, 1};
  const auto back = decode(encode(make_message(std::move(push))));
  ASSERT_TRUE(back);
  EXPECT_EQ(name_of(*back), "Push");
  const PushT* found = back->body.AsPush();
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->bucket, 2);
  EXPECT_EQ(found->sequence, std::uint64_t{1} << 63);
  EXPECT_EQ(found->learning_rate, 0.1F);
  EXPECT_EQ(found->codec, Codec::Bf16);
  ASSERT_EQ(found->batches.size(), 2U);
  EXPECT_EQ(found->batches[1].end(), 192);
  EXPECT_EQ(found->stops, (std::vector<std::int32_t>{0, 1}));
}

TEST(Message, MayBeLong) {
  ExchangeT exchange;
  exchange.text.assign(kLongestHeader - 1000, 7);
  const auto back = decode(encode(make_message(std::move(exchange))));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->body.AsExchange()->text.size(), kLongestHeader - 1000);

  DeclaredT declared;  // declares a network of many variables
  declared.declaration = std::make_unique<DeclarationT>();
  for (int i = 0; i < 5000; ++i) {
    declared.declaration->variables.push_back(std::make_unique<VariableT>());
    declared.declaration->variables.back()->name = "layer" + std::to_string(i) + ".weight";
    declared.declaration->variables.back()->shape = {64, 64, 3, 3};
    declared.declaration->buckets.emplace_back(i, i + 1, 0);
  }
  EXPECT_TRUE(decode(encode(make_message(std::move(declared)))));
}

TEST(Message, WithDataOfEveryWorkerAllowsFor512Workers) {
  constexpr int kWorkers = 512;
  ExchangedT exchanged;
  SnapshotDoneT done;
  AssignmentT assignment;
  for (int w = 0; w < kWorkers; ++w) {
    exchanged.texts.push_back(std::make_unique<TextT>());
    exchanged.texts.back()->text.assign(28 << 10, 7);
    done.staleness.push_back(std::make_unique<StalenessT>());
    done.staleness.back()->worker = w;
    done.staleness.back()->counts.assign(480, 1);
    assignment.staleness.push_back(std::make_unique<StalenessT>(*done.staleness.back()));
  }
  const auto texts = decode(encode(make_message(std::move(exchanged))));
  ASSERT_TRUE(texts);
  EXPECT_EQ(texts->body.AsExchanged()->texts.back()->text.size(), std::size_t{28 << 10});
  const auto snapshot = decode(encode(make_message(std::move(done))));
  ASSERT_TRUE(snapshot);
  EXPECT_EQ(snapshot->body.AsSnapshotDone()->staleness.back()->worker, kWorkers - 1);
  EXPECT_TRUE(decode(encode(make_message(std::move(assignment)))));
}

TEST(Message, IsNotEncodedWithoutABodyOrTooLong) {
  EXPECT_THROW(encode(MessageT{}), InternalError);
  ExchangeT exchange;
  exchange.text.assign(kLongestHeader, 7);
  EXPECT_THROW(encode(make_message(std::move(exchange))), InternalError);
}

TEST(Header, NeedsNoAlignment) {
  for (const MessageT& message : sample_messages()) {
    const Bytes header = encode(message);
    Bytes memory(header.size() + 8);
    for (std::size_t offset = 0; offset < 8; ++offset) {
      std::ranges::copy(header, memory.begin() + static_cast<std::ptrdiff_t>(offset));
      EXPECT_TRUE(decode(std::span(memory).subspan(offset, header.size()))) << name_of(message);
    }
  }
}

TEST(Header, ThatIsTruncatedIsRefused) {
  for (const MessageT& message : sample_messages()) {
    const Bytes header = encode(message);
    for (std::size_t length = 0; length < header.size(); ++length) {
      // The truncated header is a copy, so that a sanitizer notices a read beyond its end.
      const Bytes part(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(length));
      const auto back = decode(part);
      // A truncated header may decode when only padding is missing.
      if (back) {
        EXPECT_GT(length + 4, header.size());
        EXPECT_EQ(encode(*back), header) << name_of(message) << ", " << length;
      }
    }
  }
}

TEST(Header, OfAnotherVersionIsRefusedWithBothVersions) {
  MessageT message = make_message(ReadyT{});
  message.protocol = kProtocol + 1;
  EXPECT_EQ(problem_with(encode(message)), "protocol 6, expected 5");
  message.protocol = 0;
  EXPECT_EQ(problem_with(encode(message)), "protocol 0, expected 5");
}

TEST(Header, OfAnotherVersionIsNotDecodedFurther) {
  // This header of version 4 has a text in a place where that is invalid for version 3.
  flatbuffers::FlatBufferBuilder builder;
  const auto text = builder.CreateString("in version 4, a text");
  const auto start = builder.StartTable();
  builder.AddElement<std::uint16_t>(Message::VT_PROTOCOL, kProtocol + 1, 0);
  builder.AddElement<std::uint8_t>(Message::VT_BODY_TYPE, 1, 0);
  builder.AddOffset(Message::VT_BODY, text);
  builder.Finish(flatbuffers::Offset<Message>(builder.EndTable(start)), MessageIdentifier());
  EXPECT_EQ(problem_with(std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()))),
            "protocol 6, expected 5");
}

TEST(Header, OfAnotherProgramIsRefusedWithItsLength) {
  EXPECT_EQ(problem_with(Bytes(12)), "a header of 12 bytes that is invalid");
  EXPECT_EQ(problem_with({}), "a header of 0 bytes that is invalid");
  Bytes other = encode(make_message(ReadyT{}));
  std::memcpy(other.data() + 4, "HTTP", 4);
  EXPECT_TRUE(contains(problem_with(other), "is invalid"));
  EXPECT_EQ(problem_with(Bytes(kLongestHeader + 1)),
            "a header of 1048577 bytes, expected at most 1048576");
}

// FlatBuffers' own verification accepts each of these messages.
Bytes built(Body type, bool with_body) {
  flatbuffers::FlatBufferBuilder builder;
  const auto body = CreateReady(builder);
  FinishMessageBuffer(builder,
                      CreateMessage(builder, kProtocol, type,
                                    with_body ? body.Union() : flatbuffers::Offset<void>()));
  const auto bytes = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  return {bytes.begin(), bytes.end()};
}

TEST(Header, NeedsABodyOfAKnownKind) {
  EXPECT_TRUE(decode(built(Body::Ready, true)));
  EXPECT_NE(problem_with(built(Body::Ready, false)), "");
  EXPECT_NE(problem_with(built(Body::NONE, true)), "");
  EXPECT_NE(problem_with(built(static_cast<Body>(200), true)), "");
}

TEST(Header, NeedsAKnownCodec) {
  PushT push;
  push.codec = static_cast<Codec>(9);
  EXPECT_NE(problem_with(encode(make_message(std::move(push)))), "");
}

}  // namespace
}  // namespace syncopate::ps::wire
