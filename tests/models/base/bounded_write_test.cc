#include "models/base/bounded_write.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>

#include "models/base/file_descriptor.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

// A pipe of one page whose read end is open.
class BoundedWrite : public testing::Test {
 protected:
  static constexpr std::size_t kRoom = 4096;

  BoundedWrite() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    read_end_.reset(ends[0]);
    write_end_.reset(ends[1]);
    fcntl(write_end_.get(), F_SETPIPE_SZ, static_cast<int>(kRoom));
  }

  FileDescriptor read_end_;
  FileDescriptor write_end_;
};

TEST_F(BoundedWrite, WritesWhatFits) {
  const Written written = write_within(write_end_.get(), "one line\n", milliseconds(0));
  EXPECT_EQ(written.bytes, 9U);
  EXPECT_EQ(written.error, 0);
  std::string read_back(9, '\0');
  EXPECT_EQ(read(read_end_.get(), read_back.data(), read_back.size()), 9);
  EXPECT_EQ(read_back, "one line\n");
}

TEST_F(BoundedWrite, EndsInsideAWriteThatFindsTooLittleRoom) {
  // poll(2) reports room, and the pipe is full in the middle of write(2), which would wait.
  const std::string text(3 * kRoom, 'x');
  const Written written = write_within(write_end_.get(), text, milliseconds(0));
  EXPECT_EQ(written.bytes, kRoom);
  EXPECT_EQ(written.error, 0);
}

TEST_F(BoundedWrite, EndsWhenAFullPipeIsNotRead) {
  write_within(write_end_.get(), std::string(kRoom, 'x'), milliseconds(0));
  const Written written = write_within(write_end_.get(), "line\n", milliseconds(1));
  EXPECT_EQ(written.bytes, 0U);
  EXPECT_EQ(written.error, 0);
}

TEST_F(BoundedWrite, ReportsAReaderThatIsGone) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  read_end_.reset();
  const Written written = write_within(write_end_.get(), "line\n", milliseconds(1));
  std::signal(SIGPIPE, before);
  EXPECT_EQ(written.bytes, 0U);
  EXPECT_EQ(written.error, EPIPE);
}

TEST_F(BoundedWrite, ReportsADescriptorThatCannotBeWritten) {
  EXPECT_EQ(write_within(read_end_.get(), "line\n", milliseconds(1)).error, EBADF);
}

}  // namespace
}  // namespace syncopate
