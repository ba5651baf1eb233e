// Tests a worker's shared memory: which processes may map it, and what a shard refuses to map.
#include "ps/net/segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "models/base/errors.h"
#include "models/base/shared_memory_file.h"
#include "ps/net/connection.h"
#include "ps/net/descriptor_passing.h"
#include "tests/support/contains.h"
#include "tests/support/thrown.h"

namespace syncopate::ps {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::int64_t kSegmentElements = 1000;

std::optional<MappedSegment> map(const SegmentOwner& owner, const std::string& nonce = "a job",
                                 std::int64_t elements = kSegmentElements) {
  return map_segment(owner.name(), nonce, elements, Deadline::after(seconds(20)));
}

// Passes a file to the first process that connects, whatever its request.
class FakeOwner {
 public:
  explicit FakeOwner(FileDescriptor file)
      : file_(std::move(file)), listener_(listen_at_name(name_)), thread_([this] {
          const Deadline deadline = Deadline::after(seconds(20));
          auto shard = listener_.accept(deadline);
          (void)shard->receive(deadline);
          send_descriptor(shard->descriptor(), file_.get());
        }) {}
  const std::string& name() const { return name_; }

 private:
  std::string name_ = random_socket_name();
  FileDescriptor file_;
  Listener listener_;
  std::jthread thread_;
};

std::optional<MappedSegment> map(const FakeOwner& owner) {
  return map_segment(owner.name(), "a job", kSegmentElements, Deadline::after(seconds(20)));
}

TEST(Segment, IsSharedByAWorkerAndTwoShards) {
  const SegmentOwner owner(kSegmentElements, "a job");
  const auto one = map(owner);
  const auto other = map(owner);
  ASSERT_TRUE(one && other);
  EXPECT_EQ(owner.values().shape(), Shape{kSegmentElements});
  EXPECT_EQ(one->gradients.shape(), Shape{kSegmentElements});
  EXPECT_NE(one->values.f32().data(), other->values.f32().data());
  owner.gradients().f32()[kSegmentElements - 1] = 3.0F;
  EXPECT_EQ(one->gradients.f32()[kSegmentElements - 1], 3.0F);
  EXPECT_EQ(other->gradients.f32()[kSegmentElements - 1], 3.0F);
  one->values.f32()[0] = 5.0F;
  EXPECT_EQ(owner.values().f32()[0], 5.0F);
  EXPECT_EQ(other->values.f32()[0], 5.0F);
}

TEST(Segment, BeginsWithZerosAndIsAligned) {
  const SegmentOwner owner(kSegmentElements, "a job");
  for (const Tensor& block : {owner.values(), owner.gradients()}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.f32().data()) % kAlignmentBytes, 0U);
    for (const float element : block.f32()) ASSERT_EQ(element, 0.0F);
  }
}

TEST(Segment, IsMappedByManyShardsAtTheSameTime) {
  const SegmentOwner owner(kSegmentElements, "a job");
  std::array<bool, 8> mapped{};
  {
    std::vector<std::jthread> shards;
    shards.reserve(mapped.size());
    for (bool& one : mapped) shards.emplace_back([&] { one = map(owner).has_value(); });
  }
  for (const bool one : mapped) EXPECT_TRUE(one);
}

TEST(Segment, IsRefusedToAnotherJob) {
  const SegmentOwner owner(kSegmentElements, "a job");
  for (const std::string nonce : {"another", "", "a job that has a longer nonce"}) {
    const std::string error = message_of<UsageError>([&] { (void)map(owner, nonce); });
    EXPECT_TRUE(contains(error, "it refused this job's nonce"));
  }
  EXPECT_TRUE(map(owner));
}

TEST(Segment, OfAnotherSizeIsRefusedByTheShard) {
  const SegmentOwner owner(kSegmentElements, "a job");
  const std::string few =
      message_of<UsageError>([&] { (void)map(owner, "a job", kSegmentElements - 1); });
  EXPECT_TRUE(contains(few, " has 1000 values, expected 999; start all tasks"));
  const std::string many =
      message_of<UsageError>([&] { (void)map(owner, "a job", std::int64_t{1} << 20); });
  EXPECT_TRUE(contains(many, " has 2097152 bytes, expected 10485760 for 1048576 values"));
}

// The file's size is not sealed: a shard that mapped it would end with SIGBUS when the file is made
// smaller.
TEST(Segment, ThatIsNotSealedAgainstShrinkingIsRefusedByTheShard) {
  constexpr std::size_t kBytes = std::size_t{2} << 20;
  FileDescriptor file(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(file.get(), kBytes), 0);
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_GROW), 0);
  const FakeOwner owner(std::move(file));
  const std::string error = message_of<FileError>([&] { (void)map(owner); });
  EXPECT_TRUE(contains(error, "can be made smaller"));
}

TEST(Segment, WithoutTheNonceIsRefusedByTheShard) {
  const FakeOwner owner(make_shared_memory_file(std::size_t{2} << 20, "a test"));
  const std::string error = message_of<FileError>([&] { (void)map(owner); });
  EXPECT_TRUE(contains(error, "does not contain this job's nonce"));
}

TEST(Segment, IsNotMappedWhenTheNameIsUnknown) {
  EXPECT_FALSE(
      map_segment(random_socket_name(), "a job", kSegmentElements, Deadline::after(seconds(20))));
}

TEST(Segment, StaysMappedWhenItsOwnerHasEnded) {
  auto owner = std::make_unique<SegmentOwner>(kSegmentElements, "a job");
  owner->values().f32()[1] = 2.0F;
  const auto segment = map(*owner);
  const std::string name = owner->name();
  owner.reset();
  ASSERT_TRUE(segment);
  EXPECT_EQ(segment->values.f32()[1], 2.0F);
  segment->gradients.f32()[1] = 4.0F;
  EXPECT_FALSE(map_segment(name, "a job", kSegmentElements, Deadline::after(seconds(20))));
}

TEST(Segment, IsNotDelayedBySilentCallers) {
  const SegmentOwner owner(kSegmentElements, "a job", hours(1));
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(call_name(owner.name()));
  EXPECT_TRUE(map(owner));
}

TEST(Segment, ClosesASilentCallerAfterTheTimeout) {
  const SegmentOwner owner(kSegmentElements, "a job", milliseconds(1));
  const FileDescriptor silent = call_name(owner.name());
  ASSERT_TRUE(wait_ready(silent.get(), POLLIN, Deadline::after(seconds(20))));
  EXPECT_THROW((void)receive_descriptor(silent.get(), "the owner"), PeerError);
}

TEST(Segment, IsNotGivenToACallerOfAnotherProtocol) {
  const SegmentOwner owner(kSegmentElements, "a job");
  Connection caller(call_name(owner.name()), "the owner");
  caller.send({0x1234, "a job"}, Deadline::after(seconds(20)));
  ASSERT_TRUE(wait_ready(caller.descriptor(), POLLIN, Deadline::after(seconds(20))));
  EXPECT_FALSE(receive_descriptor(caller.descriptor(), "the owner"));
}

// A Linux thread has credentials of its own, so one thread can act as another user; the C library
// hides this.
bool become_another_user() {
  constexpr int kUnprivilegedUser = 65534;
  return syscall(SYS_setresuid, -1, kUnprivilegedUser, -1) == 0;
}

FileDescriptor connect_to_name(const std::string& name) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (connect(socket.get(), generic, length) != 0) socket.reset();
  return socket;
}

TEST(Segment, IsNotGivenToAnotherUser) {
  const SegmentOwner owner(kSegmentElements, "a job");
  bool is_another = false;
  bool is_mapped = true;
  bool is_given = true;
  std::jthread([&] {
    is_another = become_another_user();
    if (!is_another) return;
    is_mapped = map(owner).has_value();
    Connection caller(connect_to_name(owner.name()), "the owner");
    try {
      caller.send({kSegmentRequest, "a job"}, Deadline::after(seconds(20)));
      (void)wait_ready(caller.descriptor(), POLLIN, Deadline::after(seconds(20)));
      is_given = static_cast<bool>(receive_descriptor(caller.descriptor(), "the owner"));
    } catch (const PeerError&) {
      is_given = false;
    }
  }).join();
  if (!is_another) GTEST_SKIP() << "only root can run as another user";
  EXPECT_FALSE(is_mapped);
  EXPECT_FALSE(is_given);
}

// Returns whether the page of this address is in the page tables. Source: proc(5), pagemap.
bool is_in_page_tables(const float* address) {
  const auto page = reinterpret_cast<std::uintptr_t>(address) / 4096;
  const FileDescriptor pages(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  std::uint64_t entry = 0;
  EXPECT_EQ(pread(pages.get(), &entry, sizeof entry, static_cast<off_t>(page * sizeof entry)), 8);
  constexpr int kPresentBit = 63;
  return (entry >> kPresentBit) != 0;
}

// A shard of several uses a part of a worker's model.
TEST(Segment, EntersOnlyTheAskedElementsInThePageTables) {
  constexpr std::int64_t kMany = std::int64_t{8} << 20;
  constexpr std::int64_t kUsed = kMany / 4;
  const SegmentOwner owner(kMany, "a job");
  const auto mapped = map(owner, "a job", kMany);
  ASSERT_TRUE(mapped);
  fill_page_tables(*mapped, kUsed, 2 * kUsed);
  for (const Tensor* block : {&mapped->values, &mapped->gradients}) {
    const float* const first = block->f32().data();
    EXPECT_TRUE(is_in_page_tables(first + kUsed));
    EXPECT_TRUE(is_in_page_tables(first + 2 * kUsed - 1));
    EXPECT_FALSE(is_in_page_tables(first + kMany - 1));
  }
}

}  // namespace
}  // namespace syncopate::ps
