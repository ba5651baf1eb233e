#include "models/base/standard_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <iostream>
#include <string>

#include "models/base/file_descriptor.h"

namespace syncopate {
namespace {

// While an object lives, a standard descriptor is a pipe of one page that is full.
class FullStream {
 public:
  explicit FullStream(int descriptor) : descriptor_(descriptor), before_(dup(descriptor)) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return;
    read_end_.reset(ends[0]);
    const FileDescriptor write_end(ends[1]);
    fcntl(write_end.get(), F_SETPIPE_SZ, 4096);
    while (write(write_end.get(), "x", 1) == 1) continue;
    fcntl(write_end.get(), F_SETFL, 0);  // the program's end waits, as usual
    dup2(write_end.get(), descriptor_);
  }
  FullStream(const FullStream&) = delete;
  FullStream& operator=(const FullStream&) = delete;
  ~FullStream() { dup2(before_.get(), descriptor_); }

  // Returns what is in the pipe now, without the bytes that filled it.
  std::string read_all() const {
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = read(read_end_.get(), part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(n));
    }
    text.erase(0, text.find_first_not_of('x'));
    return text;
  }

 private:
  int descriptor_;
  FileDescriptor before_;
  FileDescriptor read_end_;
};

// While an object lives, a request to stop has arrived that the program has blocked.
class PendingStop {
 public:
  PendingStop() {
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &stop, &before_);
    raise(SIGTERM);
  }
  PendingStop(const PendingStop&) = delete;
  PendingStop& operator=(const PendingStop&) = delete;
  ~PendingStop() {
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigwaitinfo(&stop, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t before_{};
};

TEST(StandardError, ThatIsNotReadDropsLinesAndSaysHowMany) {
  const FullStream err(STDERR_FILENO);
  const StandardStreams streams;
  std::cerr << std::string("a\nb\n") << std::flush;  // waits for some seconds
  std::cerr << std::string("c\n") << std::flush;     // does not wait
  EXPECT_EQ(err.read_all(), "");
  std::cerr << std::string("d\n") << std::flush;
  EXPECT_EQ(err.read_all(), "syncopate: 3 lines were dropped here, because nothing read them\nd\n");
  std::cerr << std::string("e\n") << std::flush;
  EXPECT_EQ(err.read_all(), "e\n");
}

TEST(StandardError, DropsNothingThatFits) {
  const FullStream err(STDERR_FILENO);
  err.read_all();
  const StandardStreams streams;
  std::cerr << "a\n" << std::flush;
  EXPECT_EQ(err.read_all(), "a\n");
}

TEST(StandardOutput, ThatIsNotReadIsGivenUpOnARequestToStop) {
  const FullStream out(STDOUT_FILENO);
  const StandardStreams streams;
  std::cout << "result\n";
  const PendingStop stop;
  EXPECT_FALSE(StandardStreams::is_output_complete());
  std::cout.clear();
}

TEST(StandardOutput, IsCompleteOnceItIsRead) {
  const FullStream out(STDOUT_FILENO);
  out.read_all();
  const StandardStreams streams;
  std::cout << "result " << 1 << '\n';
  EXPECT_EQ(out.read_all(), "") << "the stream is buffered";
  EXPECT_TRUE(StandardStreams::is_output_complete());
  EXPECT_EQ(out.read_all(), "result 1\n");
}

}  // namespace
}  // namespace syncopate
