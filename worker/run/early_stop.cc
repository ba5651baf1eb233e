#include "worker/run/early_stop.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "models/base/errors.h"
#include "worker/checkpoint/checkpoint.h"
#include "worker/run/exit_code.h"

namespace syncopate {
namespace {

// The newest checkpoint; nothing when the folder cannot be read or does not answer in time, because
// the process must end even while a slow disk blocks it.
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
  }).detach();  // it may block until the process ends
  if (newest.wait_for(kTimeout) != std::future_status::ready) return std::nullopt;
  return newest.get();
}

}  // namespace

EarlyStop::EarlyStop(StopSignal& signals, std::function<void(std::string_view)> end_process)
    : ended_(eventfd(0, EFD_CLOEXEC)) {
  if (!ended_) throw FileError(describe_errno("create", "an eventfd", errno));
  thread_ = std::jthread([this, &signals, end = std::move(end_process)] {
    pthread_setname_np(pthread_self(), "early-stop");
    for (;;) {
      std::array<pollfd, 2> sources{pollfd{signals.descriptor(), POLLIN, 0},
                                    pollfd{ended_.get(), POLLIN, 0}};
      if (poll(sources.data(), sources.size(), -1) < 0) continue;
      // Read the signal first: it may arrive together with the end, when a peer was asked to stop
      // as well.
      if (const auto signal = signals.poll()) end(*signal);
      if (sources[1].revents != 0) return;
    }
  });
}

EarlyStop::~EarlyStop() { eventfd_write(ended_.get(), 1); }

EarlyEnd early_end(const TrainOptions& options, std::string_view signal) {
  const std::string when = "stopped by " + std::string(signal) + " before training began; ";
  std::optional<std::filesystem::path> newest;
  if (options.resume) newest = newest_in_time(options.loop.checkpoint_dir);
  if (!newest) return {when + "nothing was saved", kExitFailed};
  return {when + newest->string() + " is unchanged; resume it with --resume", kExitStopped};
}

}  // namespace syncopate
