// Tests the mapping of workers' shared memory while one of the workers does not answer.
#include "ps/server/segment_mapper.h"

#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "ps/net/descriptor_passing.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Mapped = std::shared_ptr<const MappedSegment>;

constexpr std::int64_t kElements = 1000;

// Requests a segment; the future has what was mapped.
std::future<Mapped> request(SegmentMapper& mapper, const std::string& segment) {
  const auto mapped = std::make_shared<std::promise<Mapped>>();
  mapper.map({.segment = segment,
              .elements = kElements,
              .buckets = {},
              .worker = "worker 1",
              .on_mapped = [mapped](Mapped one) { mapped->set_value(std::move(one)); }});
  return mapped->get_future();
}

// A worker without a CPU: its socket listens, and nothing accepts the connection.
TEST(ASegmentMapper, LetsNoWorkerWaitForAnotherOne) {
  const std::string silent = random_socket_name();
  const FileDescriptor listening = listen_at_name(silent);
  const SegmentOwner owner(kElements, "a job");
  SegmentMapper mapper("a job", std::chrono::hours(1));
  auto first = request(mapper, silent);
  auto second = request(mapper, owner.name());
  ASSERT_EQ(second.wait_for(seconds(60)), std::future_status::ready);
  EXPECT_NE(second.get(), nullptr);
  EXPECT_EQ(first.wait_for(milliseconds(0)), std::future_status::timeout);
}

TEST(ASegmentMapper, GivesUpAWorkerThatDoesNotAnswer) {
  const std::string silent = random_socket_name();
  const FileDescriptor listening = listen_at_name(silent);
  SegmentMapper mapper("a job", milliseconds(10));
  EXPECT_EQ(request(mapper, silent).get(), nullptr);
  EXPECT_EQ(request(mapper, random_socket_name()).get(), nullptr) << "no process listens there";
}

TEST(ASegmentMapper, MapsNoSegmentOfAnotherJob) {
  const SegmentOwner owner(kElements, "another job");
  SegmentMapper mapper("a job", seconds(60));
  EXPECT_EQ(request(mapper, owner.name()).get(), nullptr);
}

}  // namespace
}  // namespace syncopate::ps
