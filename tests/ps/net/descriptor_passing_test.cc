// Tests passing file descriptors between processes; here one process is both ends.
#include "ps/net/descriptor_passing.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>

#include "models/base/errors.h"
#include "ps/net/connection.h"
#include "tests/support/contains.h"
#include "tests/support/file_limit.h"
#include "tests/support/thrown.h"

namespace syncopate {
namespace {

using std::chrono::seconds;

// Both ends of a connection to a socket of the abstract namespace.
struct Ends {
  FileDescriptor caller;
  FileDescriptor called;
};

Ends connect_by_name() {
  const std::string name = random_socket_name();
  Listener listener(listen_at_name(name));
  Ends ends;
  ends.caller = call_name(name);
  std::optional<Connection> accepted = listener.accept(Deadline::after(seconds(5)));
  if (accepted) ends.called = accepted->release();
  return ends;
}

ino_t inode_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(PassedDescriptor, RefersToTheSameFile) {
  const Ends ends = connect_by_name();
  ASSERT_TRUE(ends.caller && ends.called);
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
  const FileDescriptor read_end(pipe_ends[0]);
  const FileDescriptor write_end(pipe_ends[1]);
  send_descriptor(ends.called.get(), read_end.get());
  const FileDescriptor received = receive_descriptor(ends.caller.get(), "the owner");
  ASSERT_TRUE(received);
  EXPECT_NE(received.get(), read_end.get());
  EXPECT_EQ(inode_of(received.get()), inode_of(read_end.get()));
  EXPECT_EQ(fcntl(received.get(), F_GETFD), FD_CLOEXEC);
}

TEST(PassedDescriptor, IsEmptyAfterARefusal) {
  const Ends ends = connect_by_name();
  refuse_descriptor(ends.called.get());
  EXPECT_FALSE(receive_descriptor(ends.caller.get(), "the owner"));
}

TEST(PassedDescriptor, IsAnErrorThatNamesAnOwnerThatHasClosed) {
  Ends ends = connect_by_name();
  ends.called.reset();
  EXPECT_EQ(
      message_of<PeerError>([&] { (void)receive_descriptor(ends.caller.get(), "the owner"); }),
      "the owner closed the connection before it passed the file descriptor");
}

// When a process sends two descriptors at once, the kernel closes the second one in the receiver.
TEST(PassedDescriptor, ArrivesAlone) {
  const Ends ends = connect_by_name();
  std::array<int, 2> both = {ends.called.get(), ends.called.get()};
  char byte = 0;
  iovec bytes{.iov_base = &byte, .iov_len = 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof both)> control{};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof both);
  std::memcpy(CMSG_DATA(header), both.data(), sizeof both);
  ASSERT_EQ(sendmsg(ends.called.get(), &message, 0), 1);
  const auto before = open_descriptors();
  const FileDescriptor received = receive_descriptor(ends.caller.get(), "the owner");
  EXPECT_TRUE(received);
  EXPECT_EQ(open_descriptors(), before + 1);
}

TEST(PassedDescriptor, BeyondTheLimitOnOpenFilesIsAnErrorThatNamesTheLimit) {
  if (kNeedsDescriptors != nullptr) GTEST_SKIP() << kNeedsDescriptors;
  const Ends ends = connect_by_name();
  send_descriptor(ends.called.get(), ends.called.get());
  const FileDescriptor highest(dup(ends.called.get()));
  std::optional<FileLimit> none(static_cast<rlim_t>(highest.get()));
  const std::string error =
      message_if_thrown<FileError>([&] { receive_descriptor(ends.caller.get(), "the owner"); });
  none.reset();
  EXPECT_TRUE(contains(error, "ulimit -n"));
}

TEST(AbstractName, IsNotReachedWithoutAListener) { EXPECT_FALSE(call_name(random_socket_name())); }

TEST(AbstractName, IsUnique) { EXPECT_NE(random_socket_name(), random_socket_name()); }

TEST(AbstractName, IsFreeAgainWhenItsOwnerHasEnded) {
  const std::string name = random_socket_name();
  FileDescriptor listening = listen_at_name(name);
  EXPECT_THROW((void)listen_at_name(name), FileError);
  listening.reset();
  EXPECT_FALSE(call_name(name));
  EXPECT_TRUE(listen_at_name(name));
}

}  // namespace
}  // namespace syncopate
