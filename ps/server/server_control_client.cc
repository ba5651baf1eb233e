#include "ps/server/server_control_client.h"

#include <fmt/format.h>

#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/reconnect_timeout.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"

namespace syncopate::ps {

ServerControlClient::ServerControlClient(ServerOptions& options, DataService& data,
                                         ServerDuties& duties, const std::function<bool()>& stop,
                                         const std::function<void(const std::string&)>& note)
    : options_(options),
      data_(data),
      duties_(duties),
      socket_(options, data, duties, stop, note),
      register_by_(Deadline::after(options.rendezvous_timeout)),
      reconnect_("this server", server_0_timeout(), stop) {}

std::chrono::milliseconds ServerControlClient::server_0_timeout() const {
  return options_.servers_return ? options_.peer_timeout + options_.worker_timeout
                                 : options_.peer_timeout * 8 / 10;
}

std::string ServerControlClient::name() const {
  return "server 0 at " + to_string(options_.rendezvous);
}

void ServerControlClient::send_hello() {
  wire::HelloT hello = duties_.hello();
  if (is_registered_) hello.incarnation = hello.server->incarnation;
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
  while (!duties_.is_finished() && !duties_.failure()) {
    const std::chrono::nanoseconds suspended = socket_.wait();
    if (suspended.count() > 0 && is_registered_) reconnect_.extend(suspended);
    run_once();
    check_deadlines();
    socket_.check_stop(is_registered_, true);
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
    if (const auto message = socket_->receive()) {
      busy = true;
      if (message->header.body.type == wire::Body::Welcome) {
        is_registered_ = is_accepted_ = true;
        reconnect_.end();
        socket_->watch("", server_0_timeout(), message->header.body.AsWelcome()->process);
        for (wire::MessageT& unsent : std::exchange(unsent_, {})) send(std::move(unsent));
      }
      duties_.on_message(message->header);
    }
    socket_->flush();
  }
  data_.take_ended_steps();  // none here: steps end on shard 0 only
  for (wire::MessageT& reply : duties_.take_replies()) send(std::move(reply));
}

void ServerControlClient::check_deadlines() {
  const bool has_checkpoints = !options_.snapshot_dir.empty();
  if (!is_registered_ && register_by_.passed()) {
    throw PeerError(
        fmt::format("{} did not answer within {}{}{}", name(), in_seconds(register_by_.timeout()),
                    socket_->why_no_answer(options_.rendezvous), resume_advice(has_checkpoints)));
  }
  for (const auto& [peer, lost] : socket_->lost()) {
    throw PeerError(fmt::format("{} {}{}", name(), describe(lost), resume_advice(has_checkpoints)));
  }
  if (const auto reason = reconnect_.expired(name(), has_checkpoints)) throw PeerError(*reason);
}

}  // namespace syncopate::ps
