#include "models/base/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <mutex>
#include <optional>
#include <streambuf>
#include <string>
#include <string_view>

#include "models/base/bounded_write.h"
#include "models/base/stop_signals.h"

namespace syncopate {
namespace {

using std::chrono::milliseconds;

// How long a write to std::cerr waits for a reader.
constexpr milliseconds kReaderTimeout(5000);
// How long a write waits for a reader once a request to stop has arrived.
constexpr milliseconds kStopTimeout(1000);
constexpr milliseconds kStopPollInterval(100);

void open_missing_descriptors() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    // The new descriptor gets this number, because it is the lowest one that is free.
    const int opened = open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    // Without /dev a folder serves as well: it can neither be read nor written.
    if (opened < 0) open("/", O_RDONLY | O_DIRECTORY);
  }
}

// True if a signal waits that the process has blocked in order to stop by itself.
bool is_stop_pending() {
  sigset_t pending;
  if (sigpending(&pending) != 0) return false;
  return std::ranges::any_of(kStopSignals, [&](const NamedSignal& signal) {
    return sigismember(&pending, signal.number) == 1;
  });
}

// Writes until a write fails, no room was made for `timeout` (none: without end), or kStopTimeout
// has passed after a request to stop. Returns the number of bytes written.
std::size_t write_until(int descriptor, std::string_view text,
                        std::optional<milliseconds> timeout) {
  std::size_t done = 0;
  milliseconds waited(0);
  milliseconds waited_after_stop(0);
  for (;;) {
    const auto left = timeout ? *timeout - waited : kStopPollInterval;
    const Written written =
        write_within(descriptor, text.substr(done), std::clamp(left, {}, kStopPollInterval));
    done += written.bytes;
    if (done == text.size() || written.error != 0) return done;
    waited = written.bytes > 0 ? milliseconds(0) : waited + kStopPollInterval;
    if (is_stop_pending()) waited_after_stop += kStopPollInterval;
    if ((timeout && waited >= *timeout) || waited_after_stop >= kStopTimeout) return done;
  }
}

// Keeps a buffer, as stdio does: it is written when it is full, and on a terminal with each line.
class OutputBuffer final : public std::streambuf {
 public:
  ~OutputBuffer() override { write_out(); }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const std::lock_guard lock(mutex_);
    const std::string_view added(text, static_cast<std::size_t>(size));
    kept_ += added;
    const bool is_due =
        kept_.size() >= kMostKept || (is_terminal_ && added.find('\n') != std::string_view::npos);
    return !is_due || write_out() ? size : 0;
  }
  int sync() override {
    const std::lock_guard lock(mutex_);
    return write_out() ? 0 : -1;
  }

 private:
  static constexpr std::size_t kMostKept = std::size_t{64} << 10;

  // Text that could not be written is lost, and the stream fails.
  bool write_out() {
    const std::size_t done = write_until(STDOUT_FILENO, kept_, std::nullopt);
    const bool is_written = done == kept_.size();
    kept_.clear();
    return is_written;
  }

  const bool is_terminal_ = isatty(STDOUT_FILENO) == 1;
  std::mutex mutex_;
  std::string kept_;  // guarded by mutex_
};

// Writes each text at once, so that lines of several threads and processes do not mix. Reports no
// error, so a program goes on after its standard error was closed.
class ErrorBuffer final : public std::streambuf {
 public:
  ~ErrorBuffer() override { write({}); }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    write({&one, 1});
    return c;
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    write({text, static_cast<std::size_t>(size)});
    return size;
  }

 private:
  void write(std::string_view text) {
    // The lock is held while the write waits, so that the others wait no longer than the first.
    const std::lock_guard lock(mutex_);
    const std::string note = note_of_dropped();
    const std::string all = note + std::string(text);
    const std::size_t done =
        write_until(STDERR_FILENO, all, is_stalled_ ? milliseconds(0) : kReaderTimeout);
    is_stalled_ = done < all.size();
    if (done > 0) ends_broken_ = all[done - 1] != '\n';
    if (done >= note.size()) dropped_lines_ = 0;
    const std::string_view dropped = std::string_view(all).substr(std::max(done, note.size()));
    dropped_lines_ += std::ranges::count(dropped, '\n');
  }

  std::string note_of_dropped() const {
    if (dropped_lines_ == 0) return "";
    return fmt::format("{}syncopate: {} lines were dropped here, because nothing read them\n",
                       ends_broken_ ? "\n" : "", dropped_lines_);
  }

  std::mutex mutex_;
  // Guarded by mutex_.
  bool is_stalled_ = false;   // the last text was not written, since nothing reads
  bool ends_broken_ = false;  // the written text ends in a line
  std::ptrdiff_t dropped_lines_ = 0;
};

}  // namespace

struct StandardStreams::Buffers {
  OutputBuffer out;
  ErrorBuffer err;
  std::streambuf* const out_before = std::cout.rdbuf(&out);
  std::streambuf* const err_before = std::cerr.rdbuf(&err);

  Buffers() = default;
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    std::cout.flush();
    std::cout.rdbuf(out_before);
    std::cerr.rdbuf(err_before);
  }
};

StandardStreams::StandardStreams() {
  open_missing_descriptors();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  buffers_ = std::make_unique<Buffers>();
}

StandardStreams::~StandardStreams() = default;

bool StandardStreams::is_output_complete() {
  if (std::cout.flush()) return true;
  pollfd output{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return poll(&output, 1, 0) == 1 && (output.revents & POLLERR) != 0;
}

}  // namespace syncopate
