#include "deploy/early_stop.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <optional>

#include "deploy/launch/exit_code.h"
#include "models/base/errors.h"
#include "worker/checkpoint.h"

namespace syncopate {
EarlyStop::EarlyStop(StopSignal& signals, std::function<void(std::string_view)> end_process)
    : ended_(eventfd(0, EFD_CLOEXEC)) {
  if (!ended_) throw FileError(describe_errno("create", "an eventfd", errno));
  thread_ = std::jthread([this, &signals, end = std::move(end_process)] {
    pthread_setname_np(pthread_self(), "early-stop");
    for (;;) {
      std::array<pollfd, 2> sources{pollfd{signals.descriptor(), POLLIN, 0},
                                    pollfd{ended_.get(), POLLIN, 0}};
      if (poll(sources.data(), sources.size(), -1) < 0) continue;
      // Also one that came together with what ends the wait: a peer that was asked to stop as well.
      if (const auto signal = signals.poll()) end(*signal);
      if (sources[1].revents != 0) return;
    }
  });
}

EarlyStop::~EarlyStop() { eventfd_write(ended_.get(), 1); }

EarlyEnd early_end(const TrainOptions& options, std::string_view signal) {
  const std::string when = "stopped by " + std::string(signal) + " before training began; ";
  std::optional<std::filesystem::path> newest;
  try {
    if (options.resume) newest = newest_checkpoint(options.loop.checkpoint_dir);
  } catch (const FileError&) {  // a folder that cannot be read has nothing to go on from
  }
  if (!newest) return {when + "nothing was saved", kExitFailed};
  return {when + newest->string() + " is as it was; --resume goes on from there", kExitStopped};
}

}  // namespace syncopate
