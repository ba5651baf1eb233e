#include "ps/server/control_socket.h"

#include <fmt/format.h>

#include <utility>

#include "models/base/errors.h"
#include "ps/net/endpoint.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kStopTimeout = std::chrono::seconds(600);
constexpr milliseconds kPollInterval(20);
// How often the control thread looks for ended steps: steps of small networks follow each other
// faster than the control thread needs to run.
constexpr milliseconds kStepsInterval(2);
// A longer time between two passes of the control loop means that the process was suspended or
// starved.
constexpr milliseconds kControlSuspended(500);

std::unique_ptr<wire::Socket> open_control_socket(wire::Context& context, ServerOptions& options) {
  const Endpoint& rendezvous = options.rendezvous;
  const wire::SocketLimits limits =
      wire::limits_for_tasks(options.workers + options.servers, options.nonce);
  if (options.index != 0) return wire::Socket::connect(context, rendezvous, limits);
  if (options.listening) return wire::Socket::listen(context, std::move(options.listening), limits);
  return wire::Socket::listen(context, listening_endpoint(rendezvous.host, rendezvous.port),
                              limits);
}

}  // namespace

void StopTimeout::check(bool has_job, bool has_workers) {
  if (!ends_) {
    if (!stop_()) return;
    ends_ = Deadline::after(kStopTimeout);
    if (has_job) {
      note_(fmt::format("stop requested; waits up to {} for the workers to end",
                        in_seconds(kStopTimeout)));
    }
  }
  if (!has_job) throw PeerError("stopped before the job had begun");
  if (!has_workers) {
    throw PeerError("stopped before the job was over: no worker is left to end it");
  }
  if (ends_->passed()) {
    throw PeerError(fmt::format(
        "stopped before the job was over: the workers had not ended {} after the request to stop",
        in_seconds(kStopTimeout)));
  }
}

ControlSocket::ControlSocket(ServerOptions& options, const DataService& data,
                             const ServerDuties& duties, const std::function<bool()>& stop,
                             const std::function<void(const std::string&)>& note)
    : data_(data),
      duties_(duties),
      stop_timeout_(stop, note),
      status_interval_(options.peer_timeout / 10),
      next_status_(Deadline::after(status_interval_)),
      next_steps_(Deadline::after(milliseconds(0))) {
  socket_.emplace(open_control_socket(context_, options), options.peer_timeout / 10, step_);
}

std::chrono::nanoseconds ControlSocket::wait() {
  // poll() ignores a negative descriptor.
  const bool is_too_early = !next_steps_.passed();
  std::vector<pollfd> polled{{is_too_early ? -1 : data_.descriptor(), POLLIN, 0},
                             {duties_.descriptor(), POLLIN, 0}};
  poll_with_socket(polled, is_too_early ? kStepsInterval : kPollInterval);
  if (polled.front().revents != 0) next_steps_ = Deadline::after(kStepsInterval);
  const auto now = Deadline::Clock::now();
  const auto since_last = now - std::exchange(last_wait_, now);
  return since_last > kControlSuspended ? since_last : std::chrono::nanoseconds(0);
}

void ControlSocket::wait_for_messages() const {
  std::vector<pollfd> polled;
  poll_with_socket(polled, kPollInterval);
}

void ControlSocket::poll_with_socket(std::vector<pollfd>& polled, milliseconds timeout) const {
  for (const int descriptor : socket_->descriptors()) polled.push_back({descriptor, POLLIN, 0});
  poll(polled.data(), polled.size(), static_cast<int>(timeout.count()));
}

bool ControlSocket::is_status_due() {
  if (!next_status_.passed()) return false;
  next_status_ = Deadline::after(status_interval_);
  return true;
}

}  // namespace syncopate::ps
