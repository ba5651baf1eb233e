// Tests the memory segment that tasks of one host share: which programs receive it, and its errors.
#include "strategies/collective/shared_segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "ps/net/greeting.h"
#include "tests/strategies/cluster/threads_as_tasks.h"
#include "tests/support/contains.h"

namespace syncopate {
namespace {

using std::chrono::seconds;

constexpr std::size_t kHeaderBytes = 100;

// Connects to the socket `name` of the abstract namespace.
FileDescriptor call(const std::string& name) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy_n(name.data(), std::min(name.size(), sizeof(address.sun_path) - 1),
              address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (connect(socket.get(), generic, length) != 0) socket.reset();
  return socket;
}

// Connects to the socket at which this process hands out memory; returns nothing while there is
// none. Every program of the host can read the socket's name in /proc/net/unix.
FileDescriptor call_socket() {
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const std::size_t at = line.find("@syncopate-");
    if (at == std::string::npos) continue;
    FileDescriptor socket = call(line.substr(at + 1));
    ucred owner{};
    socklen_t length = sizeof owner;
    if (socket && getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &owner, &length) == 0 &&
        owner.pid == getpid()) {
      return socket;
    }
  }
  return {};
}

// Returns the name in the abstract namespace of the socket at the other end.
std::string name_of(int socket) {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  EXPECT_EQ(getpeername(socket, reinterpret_cast<sockaddr*>(&address), &length), 0);
  return {address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1};
}

// Returns whether a descriptor is received before the other end closes the connection.
bool receives_a_descriptor(int socket) {
  for (;;) {
    std::array<char, 100> bytes{};
    iovec data{.iov_base = bytes.data(), .iov_len = bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(socket, &message, 0) <= 0) return false;
    if (CMSG_FIRSTHDR(&message) != nullptr) return true;
  }
}

// The result of share_segment() for one task.
struct Shared {
  std::unique_ptr<SharedSegment> segment;
  std::string peer_error;
  std::string usage_error;
  std::string memory_error;
};

Shared share(Membership& membership, std::int64_t block_elements = 10) {
  Shared shared;
  try {
    const std::vector<std::int64_t> blocks(membership.members().size(), block_elements);
    shared.segment = share_segment(membership, kHeaderBytes, blocks, seconds(10));
  } catch (const PeerError& error) {
    shared.peer_error = error.what();
  } catch (const UsageError& error) {
    shared.usage_error = error.what();
  } catch (const OutOfMemoryError& error) {
    shared.memory_error = error.what();
  }
  return shared;
}

TEST(SharedSegment, IsMappedByAllTasks) {
  const auto tasks = meet(3);
  std::vector<Shared> shared(3);
  at_once(3, [&](int i) {
    shared[static_cast<std::size_t>(i)] = share(*tasks[static_cast<std::size_t>(i)]);
  });
  for (const Shared& task : shared) ASSERT_NE(task.segment, nullptr) << task.peer_error;
  shared[2].segment->blocks[1].f32()[3] = 5.0F;
  EXPECT_EQ(shared[0].segment->blocks[1].f32()[3], 5.0F);
  EXPECT_EQ(shared[1].segment->blocks[1].f32()[3], 5.0F);
  EXPECT_NE(shared[0].segment->memory->data(), shared[1].segment->memory->data());
}

TEST(SharedSegment, HasABlockForEachRankOfTheSizeAskedFor) {
  const auto tasks = meet(3);
  const std::vector<std::int64_t> sizes = {10, 7'000'000, 20};
  std::vector<std::unique_ptr<SharedSegment>> segments(3);
  at_once(3, [&](int i) {
    const auto index = static_cast<std::size_t>(i);
    segments[index] = share_segment(*tasks[index], kHeaderBytes, sizes, seconds(10));
    for (float& value : segments[index]->blocks[index].f32()) value = static_cast<float>(i + 1);
  });
  for (std::size_t r = 0; r < sizes.size(); ++r) {
    const std::span<const float> block = segments[0]->blocks[r].f32();
    EXPECT_EQ(std::ssize(block), sizes[r]);
    const auto own = static_cast<float>(r + 1);
    EXPECT_TRUE(std::ranges::all_of(block, [own](float value) { return value == own; }));
  }
  EXPECT_LT(segments[0]->memory->size_bytes(), 3 * sizes[1] * sizeof(float));
}

TEST(SharedSegment, IsSentToTheTasksOfTheJobOnly) {
  const auto tasks = meet(2);
  std::vector<Shared> shared(2);
  std::jthread rank_zero([&] { shared[0] = share(*tasks[0]); });
  FileDescriptor silent;
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(silent = call_socket()); }));
  const auto proof_of = [&](const std::string& index, const std::string& nonce) {
    return Frame{0x5347, prove(nonce, {"segment of gradients", name_of(silent.get()), index})};
  };
  Connection guessing(call_socket(), "rank 0's task");
  guessing.send(proof_of("1", "jab"), Deadline::after(seconds(10)));
  Connection out_of_range(call_socket(), "rank 0's task");
  out_of_range.send(proof_of("2", tasks[0]->nonce()), Deadline::after(seconds(10)));
  shared[1] = share(*tasks[1]);
  rank_zero.join();
  for (const Shared& task : shared) EXPECT_NE(task.segment, nullptr) << task.peer_error;
  for (const int caller : {silent.get(), guessing.descriptor(), out_of_range.descriptor()}) {
    EXPECT_FALSE(receives_a_descriptor(caller));
  }
}

TEST(SharedSegment, IsRefusedForNetworksOfDifferentSize) {
  const auto tasks = meet(3);
  std::vector<std::string> errors(3);
  at_once(3, [&](int i) {
    const auto index = static_cast<std::size_t>(i);
    errors[index] = share(*tasks[index], i == 2 ? 11 : 10).usage_error;
  });
  EXPECT_EQ(errors[0].find("the tasks' networks differ in size: rank 2 (host "), 0U) << errors[0];
  EXPECT_TRUE(
      contains(errors[0], " has 33 values for 3 ranks", "rank 0 has 30 values for 3 ranks"));
  EXPECT_EQ(errors[1], errors[0]);
  EXPECT_EQ(errors[2], errors[0]);
}

TEST(SharedSegment, NamesTheTaskThatFailedBeforeItReceivedIt) {
  const auto tasks = meet(2);
  Shared shared;
  {
    const std::jthread rank_zero([&] { shared = share(*tasks[0]); });
    (void)tasks[1]->exchange("");
    tasks[1]->fail("the disk is full");
  }
  EXPECT_TRUE(contains(shared.peer_error, "failed: the disk is full"));
}

TEST(SharedSegment, IsRefusedWhenTheMachineHasNotEnoughMemory) {
  const auto tasks = meet(2);
  std::vector<Shared> shared(2);
  at_once(2, [&](int i) {
    const auto index = static_cast<std::size_t>(i);
    shared[index] = share(*tasks[index], std::int64_t{1} << 58);
  });
  for (const Shared& task : shared) {
    EXPECT_TRUE(contains(task.memory_error, "MiB for gradients are not available"))
        << task.memory_error << task.peer_error;
  }
}

}  // namespace
}  // namespace syncopate
