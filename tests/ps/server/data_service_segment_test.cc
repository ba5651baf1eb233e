// What goes through a worker's shared memory, and what does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "ps/net/segment.h"
#include "tests/ps/server/data_service_case.h"

namespace syncopate::ps::testing {
namespace {

const std::vector<float> kGradient(8, 1.0F);

TEST(ADataService, ChecksNothingThatAWorkerCouldChangeAfterwards) {
  const JobShape shape;
  DataServiceCase service(shape);
  const SegmentOwner segment(shape.bucket_sizes[0], shape.nonce);
  // Four indices, then as many values: right as it stands.
  for (std::uint32_t i = 0; i < 4; ++i) segment.gradients().f32()[i] = std::bit_cast<float>(i);
  Caller caller = service.call("w0.1");
  caller.say(hello_of(0, 1, segment.name()));
  ASSERT_TRUE(caller.take<wire::DataWelcomeT>().uses_segment);
  wire::PushT push = push_of(1, 1);
  push.in_segment = true;
  push.codec = wire::Codec::TopK;
  caller.say(push);
  caller.say(pull_of({0}));
  EXPECT_EQ(caller.take<wire::ValuesT>().sequence, 0U);
  push.codec = wire::Codec::F32;
  std::ranges::fill(segment.gradients().f32(), 1.0F);
  caller.say(push);
  EXPECT_EQ(caller.take<wire::ValuesT>().sequence, 1U);
  EXPECT_EQ(segment.values().f32()[0], -1.0F);
}

TEST(ADataService, SendsValuesTheWayTheyWereAskedFor) {
  const JobShape shape{.workers = 2, .consistency = 0};
  DataServiceCase service(shape);
  const SegmentOwner segment(shape.bucket_sizes[0], shape.nonce);
  Caller second = service.call("w1.1");
  second.say(hello_of(1, 1));
  second.take<wire::DataWelcomeT>();
  Caller first = service.call("w0.1");
  first.say(hello_of(0, 1));
  first.take<wire::DataWelcomeT>();
  first.say(push_of(1, 1), kGradient);
  // Its memory could not be reached before.
  first.say(hello_of(0, 1, segment.name()));
  ASSERT_TRUE(first.take<wire::DataWelcomeT>().uses_segment);
  second.say(push_of(1, 1), kGradient);
  EXPECT_FALSE(first.take<wire::ValuesT>(1).in_segment);
}

}  // namespace
}  // namespace syncopate::ps::testing
