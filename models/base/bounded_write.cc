#include "models/base/bounded_write.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "models/base/deadline.h"

namespace syncopate {
namespace {

// SIGURG is ignored by default, so that one that comes late has no effect.
constexpr int kInterrupt = SIGURG;

// Makes kInterrupt end a system call that waits with EINTR.
bool handle_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  return sigaction(kInterrupt, &action, nullptr) == 0;
}

// While an object lives, every system call that this thread waits in ends within kInterval. poll(2)
// is not enough: a pipe that has room may be full again at the write if another process shares it.
// If the timer cannot be created, such a write waits for the reader.
class WaitInterrupter {
 public:
  WaitInterrupter() {
    static const bool handles = handle_interrupts();
    sigset_t interrupts;
    sigemptyset(&interrupts);
    sigaddset(&interrupts, kInterrupt);
    pthread_sigmask(SIG_UNBLOCK, &interrupts, &mask_);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = kInterrupt;
    event._sigev_un._tid = gettid();
    exists_ = handles && timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    if (!exists_) return;
    // The timer repeats, because a signal may arrive just before the system call begins.
    constexpr timespec kInterval{.tv_sec = 0, .tv_nsec = 100'000'000};
    const itimerspec times{.it_interval = kInterval, .it_value = kInterval};
    timer_settime(timer_, 0, &times, nullptr);
  }
  WaitInterrupter(const WaitInterrupter&) = delete;
  WaitInterrupter& operator=(const WaitInterrupter&) = delete;
  ~WaitInterrupter() {
    if (exists_) timer_delete(timer_);
    pthread_sigmask(SIG_SETMASK, &mask_, nullptr);
  }

 private:
  sigset_t mask_{};
  timer_t timer_{};
  bool exists_ = false;
};

}  // namespace

Written write_within(int descriptor, std::string_view bytes, std::chrono::milliseconds timeout) {
  const Deadline deadline = Deadline::after(timeout);
  Written done;
  while (done.bytes < bytes.size()) {
    pollfd room{.fd = descriptor, .events = POLLOUT, .revents = 0};
    const int ready = ::poll(&room, 1, deadline.remaining_milliseconds());
    if (ready == 0) {
      // A pipe that is open for reading only is never ready; an empty write tells.
      if (::write(descriptor, "", 0) < 0) done.error = errno;
      return done;
    }
    if (ready < 0 && errno == EINTR) continue;
    const WaitInterrupter interrupter;
    const std::string_view rest = bytes.substr(done.bytes);
    const ssize_t written = ::write(descriptor, rest.data(), rest.size());
    if (written >= 0) {
      done.bytes += static_cast<std::size_t>(written);
    } else if (errno != EINTR && errno != EAGAIN) {
      done.error = errno;
      return done;
    } else if (deadline.passed()) {
      return done;
    }
  }
  return done;
}

}  // namespace syncopate
