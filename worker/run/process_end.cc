#include "worker/run/process_end.h"

#include <poll.h>
#include <pthread.h>
#include <array>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "models/base/errors.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/run/exit_codes.h"

namespace syncopate {
namespace {

// Returns the newest checkpoint; nothing when the folder cannot be read or does not answer in time,
// because the process must end even while a slow disk blocks it.
std::optional<std::filesystem::path> newest_in_time(const std::filesystem::path& folder) {
  constexpr std::chrono::seconds kTimeout(2);
  using Newest = std::optional<std::filesystem::path>;
  const auto answer = std::make_shared<std::promise<Newest>>();
  std::future<Newest> newest = answer->get_future();
  std::thread([answer, folder] {
    try {
      answer->set_value(newest_checkpoint(folder));
    } catch (const FileError&) {
      answer->set_value(std::nullopt);
    }
  }).detach();  // the thread may block until the process ends
  if (newest.wait_for(kTimeout) != std::future_status::ready) return std::nullopt;
  return newest.get();
}

}  // namespace

PeerWatch::PeerWatch(Membership& membership, std::chrono::milliseconds grace, Act end_process)
    : membership_(membership) {
  thread_ = std::jthread([this, grace, end = std::move(end_process)](const std::stop_token& stop) {
    pthread_setname_np(pthread_self(), "peer-watch");
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !reason_.empty(); })) return;
    changed_.wait_for(lock, stop, grace, [] { return false; });
    if (stop.stop_requested()) return;
    const std::string reason = reason_;
    lock.unlock();
    end(reason);
  });
  membership_.on_failure([this](const std::string& reason) { note(reason); });
}

PeerWatch::~PeerWatch() { membership_.on_failure({}); }

void PeerWatch::note(const std::string& reason) {
  const std::lock_guard lock(mutex_);
  reason_ = reason;
  changed_.notify_all();
}

PeerWatch::Waker::Waker(PeerWatch& watch, Act wake) : watch_(watch) {
  watch_.membership_.on_failure([&watch, act = std::move(wake)](const std::string& reason) {
    act(reason);
    watch.note(reason);
  });
}

PeerWatch::Waker::~Waker() {
  watch_.membership_.on_failure(
      [&watch = watch_](const std::string& reason) { watch.note(reason); });
}

EarlyStop::EarlyStop(StopSignal& signals, std::function<void(std::string_view)> end_process) {
  thread_ = std::jthread([this, &signals, end = std::move(end_process)] {
    pthread_setname_np(pthread_self(), "early-stop");
    for (;;) {
      std::array<pollfd, 2> sources{pollfd{signals.descriptor(), POLLIN, 0},
                                    pollfd{ended_.descriptor(), POLLIN, 0}};
      if (poll(sources.data(), sources.size(), -1) < 0) continue;
      // Checks for a signal first: when a peer was also asked to stop, the signal may arrive while
      // the job ends and this object is destroyed.
      if (const auto signal = signals.poll()) end(*signal);
      if (sources[1].revents != 0) return;
    }
  });
}

EarlyStop::~EarlyStop() { ended_.notify(); }

EarlyEnd early_end(const TrainOptions& options, std::string_view signal) {
  const std::string when = "stopped by " + std::string(signal) + " before training began; ";
  std::optional<std::filesystem::path> newest;
  if (options.resume) newest = newest_in_time(options.loop.checkpoint_dir);
  // With --resume the same command starts again without a loss, so that a job script may requeue
  // it.
  if (!newest && options.resume) {
    return {when + "nothing was saved; the same command starts again", kExitStopped};
  }
  if (!newest) return {when + "nothing was saved", kExitFailed};
  return {when + newest->string() + " is unchanged; resume it with --resume", kExitStopped};
}

}  // namespace syncopate
