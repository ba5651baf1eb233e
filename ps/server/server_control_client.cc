#include "ps/server/server_control_client.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/reconnect_timeout.h"
#include "ps/net/endpoint.h"
#include "ps/server/stop_timeout.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

}  // namespace

ServerControlClient::ServerControlClient(const ServerOptions& options, DataService& data,
                                         ServerDuties& duties, std::function<bool()> stop,
                                         std::function<void(const std::string&)> note)
    : options_(options),
      data_(data),
      duties_(duties),
      stop_(std::move(stop)),
      note_(std::move(note)),
      socket_(wire::Socket::connect(context_, options.rendezvous, "")),
      next_heartbeat_(Deadline::after(options.peer_timeout / 10)),
      lost_after_(Deadline::after(options.rendezvous_timeout)),
      reconnect_("this server", server_0_timeout(), stop_) {}

std::chrono::milliseconds ServerControlClient::server_0_timeout() const {
  return options_.servers_return ? options_.peer_timeout + options_.worker_timeout
                                 : options_.peer_timeout * 8 / 10;
}

std::string ServerControlClient::name() const {
  return "server 0 at " + to_string(options_.rendezvous);
}

void ServerControlClient::send_hello() {
  wire::HelloT hello;
  hello.nonce = options_.nonce;
  hello.role = 1;
  hello.index = options_.index;
  hello.world_size = options_.workers;
  hello.num_servers = options_.servers;
  hello.host = own_host_name();
  hello.pid = getpid();
  hello.server = std::make_unique<wire::ServerAddressT>(duties_.address());
  hello.incarnation = is_registered_ ? hello.server->incarnation : 0;
  hello.snapshots = duties_.snapshots();
  socket_->send(wire::envelope("", make_message(std::move(hello))));
}

void ServerControlClient::send(wire::MessageT message) {
  if (is_accepted_) {
    socket_->send(wire::envelope("", message));
  } else {
    unsent_.push_back(std::move(message));
  }
}

void ServerControlClient::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    wire::FailingT failing;
    failing.reason = error.what();
    socket_->send(wire::envelope("", make_message(std::move(failing))));
    throw;
  }
  socket_->send(wire::envelope("", make_message(wire::LeavingT{})));
}

void ServerControlClient::serve() {
  auto last_pass = Deadline::Clock::now();
  StopTimeout stop_timeout(stop_, note_);
  Deadline steps_due = Deadline::after(milliseconds(0));
  while (!duties_.is_finished() && !duties_.failure()) {
    // poll() ignores a negative descriptor, which delays the look at ended steps.
    const bool is_too_early = !steps_due.passed();
    std::vector<pollfd> polled{{is_too_early ? -1 : data_.descriptor(), POLLIN, 0},
                               {duties_.descriptor(), POLLIN, 0}};
    for (const int descriptor : socket_->descriptors()) polled.push_back({descriptor, POLLIN, 0});
    poll(polled.data(), polled.size(),
         static_cast<int>((is_too_early ? kStepsInterval : kPollInterval).count()));
    if (polled.front().revents != 0) steps_due = Deadline::after(kStepsInterval);
    const auto now = Deadline::Clock::now();
    // After a suspension of this process: messages of server 0 may not have been received.
    if (now - last_pass > kSuspended && is_registered_) {
      lost_after_ = Deadline::after(server_0_timeout());
      reconnect_.extend(now - last_pass);
    }
    last_pass = now;
    run_once();
    check_deadlines();
    stop_timeout.check(is_registered_, true);
  }
  if (duties_.failure()) throw PeerError(*duties_.failure());
}

void ServerControlClient::run_once() {
  for (bool busy = true; busy;) {
    busy = false;
    if (const auto event = socket_->link_event()) {
      busy = true;
      is_accepted_ = false;
      if (is_registered_) reconnect_.begin();
      if (*event == wire::LinkEvent::kConnected) send_hello();
    }
    if (const auto envelope = socket_->receive()) {
      busy = true;
      lost_after_ = Deadline::after(server_0_timeout());
      if (const auto message = wire::decode(envelope->frames.front().bytes())) {
        if (message->body.type == wire::Body::Welcome) {
          is_registered_ = is_accepted_ = true;
          reconnect_.end();
          for (wire::MessageT& unsent : std::exchange(unsent_, {})) send(std::move(unsent));
        }
        duties_.on_message(*message);
      }
    }
    socket_->flush();
  }
  data_.take_ended_steps();  // none here: steps end on shard 0 only
  for (wire::MessageT& reply : duties_.take_replies()) send(std::move(reply));
}

void ServerControlClient::check_deadlines() {
  const bool has_checkpoints = !options_.snapshot_dir.empty();
  if (lost_after_.passed()) {
    throw PeerError(fmt::format("{} {} {}{}", name(),
                                is_registered_ ? "has sent nothing for" : "did not answer within",
                                in_seconds(lost_after_.timeout()), resume_advice(has_checkpoints)));
  }
  if (const auto reason = reconnect_.expired(name(), has_checkpoints)) throw PeerError(*reason);
  if (!next_heartbeat_.passed()) return;
  next_heartbeat_ = Deadline::after(options_.peer_timeout / 10);
  if (is_accepted_) socket_->send(wire::envelope("", make_message(wire::HeartbeatT{})));
}

}  // namespace syncopate::ps
