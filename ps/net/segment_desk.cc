#include "ps/net/segment_desk.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/net/descriptor_passing.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

// Shards of a job that call at once; more wait in the socket's queue.
constexpr std::size_t kMostCallers = 256;
// Of another job's nonce, so that it hears that it is another's.
constexpr std::size_t kLongestNonce = 4096;
// Until we look again whether there is room.
constexpr int kFullMilliseconds = 100;

void warn_turned_away(const std::string& why) {
  log(LogLevel::kWarning, "a process of this machine asked for this worker's shared memory and " +
                              why + " (turned away)");
}

}  // namespace

SegmentDesk::SegmentDesk(FileDescriptor listening, int memory, std::string nonce,
                         std::chrono::nanoseconds patience)
    : listener_(std::move(listening)),
      memory_(memory),
      nonce_(std::move(nonce)),
      patience_(patience),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_) throw FileError(describe_errno("create", "an event descriptor", errno));
}

bool SegmentDesk::is_full() const noexcept {
  return lacks_descriptors_ || callers_.size() >= kMostCallers;
}

void SegmentDesk::serve(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { eventfd_write(stop_.get(), 1); });
  while (!stop.stop_requested()) {
    wait();
    accept();
    hear();
  }
}

void SegmentDesk::wait() {
  std::vector<pollfd> sockets = {{stop_.get(), POLLIN, 0}};
  // poll() passes over negative descriptors: callers that we cannot take would keep it awake.
  sockets.push_back({is_full() ? -1 : listener_.descriptor(), POLLIN, 0});
  int milliseconds = is_full() ? kFullMilliseconds : -1;
  if (!callers_.empty()) {
    const int left = callers_.front().patience.remaining_milliseconds();
    milliseconds = is_full() ? std::min(left, milliseconds) : left;
  }
  for (const Caller& caller : callers_) {
    sockets.push_back({caller.connection.descriptor(), POLLIN, 0});
  }
  poll(sockets.data(), sockets.size(), milliseconds);
}

void SegmentDesk::accept() {
  lacks_descriptors_ = false;
  try {
    while (!is_full()) {
      std::optional<Connection> caller = listener_.accept(Deadline::after(milliseconds(0)));
      if (!caller) return;
      // Of other users there may be any number: they take nobody's place.
      if (!is_of_our_user(caller->descriptor())) {
        warn_turned_away("is another user's");
        continue;
      }
      caller->limit_payload(static_cast<std::uint32_t>(std::max(nonce_.size(), kLongestNonce)));
      callers_.push_back({*std::move(caller), Deadline::after(patience_)});
    }
  } catch (const FileError& error) {
    lacks_descriptors_ = true;
    if (!std::exchange(has_said_so_, true)) {
      log(LogLevel::kWarning, std::string(error.what()) + "; until then callers have to wait");
    }
  }
}

void SegmentDesk::hear() {
  std::erase_if(callers_,
                [this](Caller& caller) { return answer(caller) || caller.patience.passed(); });
}

bool SegmentDesk::answer(Caller& caller) const {
  const int socket = caller.connection.descriptor();
  try {
    const std::optional<Frame> request = caller.connection.try_receive();
    if (!request) return false;
    if (request->type == kSegmentRequest && request->payload == nonce_) {
      send_descriptor(socket, memory_);
    } else {
      refuse_descriptor(socket);
      warn_turned_away("is not of this job");
    }
  } catch (const PeerError& error) {
    refuse_descriptor(socket);
    warn_turned_away("failed: " + std::string(error.what()));
  }
  return true;
}

}  // namespace syncopate::ps
