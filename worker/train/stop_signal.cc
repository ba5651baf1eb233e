#include "worker/train/stop_signal.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "models/base/errors.h"
#include "models/base/stop_signals.h"

namespace syncopate {
namespace {

bool is_ignored(int number) {
  struct sigaction current {};
  return sigaction(number, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

}  // namespace

StopSignal::StopSignal(int further) {
  sigset_t stops;
  sigemptyset(&stops);
  for (const NamedSignal& signal : kStopSignals) {
    // A shell sets SIGINT to be ignored for `script &`, and nohup does so for SIGHUP. A blocked
    // signal is queued even when it is ignored, so ignored signals are left out.
    if (!is_ignored(signal.number)) sigaddset(&stops, signal.number);
  }
  if (further != 0 && !is_ignored(further)) sigaddset(&stops, further);
  descriptor_.reset(signalfd(-1, &stops, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!descriptor_) throw FileError(describe_errno("create", "a signalfd", errno));
  const int refused = pthread_sigmask(SIG_BLOCK, &stops, &previous_mask_);
  if (refused != 0) throw FileError(describe_errno("block", "the signals to stop", refused));
}

StopSignal::~StopSignal() {
  // Drops queued signals: one that is still queued would end the process when it is unblocked, and
  // its exit code would not say that a checkpoint was written. Batch systems send signals twice.
  while (poll()) {
  }
  pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
}

std::optional<std::string_view> StopSignal::poll() {
  const std::optional<int> number = poll_number();
  if (!number) return std::nullopt;
  for (const NamedSignal& signal : kStopSignals) {
    if (signal.number == *number) return signal.name;
  }
  return "a signal";
}

std::optional<int> StopSignal::poll_number() {
  signalfd_siginfo arrived{};
  if (read(descriptor_.get(), &arrived, sizeof arrived) != sizeof arrived) return std::nullopt;
  was_polled_.store(true, std::memory_order_relaxed);
  return static_cast<int>(arrived.ssi_signo);
}

bool StopSignal::was_asked() const noexcept {
  if (was_polled_.load(std::memory_order_relaxed)) return true;
  pollfd source{descriptor_.get(), POLLIN, 0};
  return ::poll(&source, 1, 0) == 1;
}

}  // namespace syncopate
