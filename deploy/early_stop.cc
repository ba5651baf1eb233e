#include "deploy/early_stop.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

#include <array>
#include <cerrno>

#include "models/base/errors.h"

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
      if (sources[1].revents != 0) return;
      if (const auto signal = signals.poll()) end(*signal);
    }
  });
}

EarlyStop::~EarlyStop() { eventfd_write(ended_.get(), 1); }

}  // namespace syncopate
