#include "ps/client/control_link.h"

#include <fmt/format.h>

#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/declaration.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/net/connection.h"
#include "ps/net/endpoint.h"

namespace syncopate::ps {

ControlLink::ControlLink(ClientState& state, const ClientOptions& options)
    : state_(state),
      options_(options),
      socket_(wire::Socket::connect(context_, options.rendezvous, {.nonce = options.nonce}),
              options.peer_timeout / 10, state.step),
      fingerprint_(fingerprint_of(options.declaration)),
      peer_timeout_(options.peer_timeout),
      join_by_(Deadline::after(options.rendezvous_timeout)),
      give_up_by_(Deadline::after(options.rendezvous_timeout + options.peer_timeout)),
      reconnect_("this worker", options.server_timeout, options.asked_to_stop) {}

std::string ControlLink::name() const { return "server 0 at " + to_string(options_.rendezvous); }

void ControlLink::send_hello(bool with_declaration) {
  wire::HelloT hello = make_hello(/*role=*/0, options_.index, options_.workers, options_.servers);
  hello.incarnation = incarnation_;
  hello.sequence = state_.sequence.load(std::memory_order_relaxed);
  {
    const std::lock_guard lock(state_.mutex);
    for (const SampleRange& range : state_.leases) hello.held.push_back(to_wire(range));
    for (const SampleRange& range : state_.leased_batches) hello.held.push_back(to_wire(range));
  }
  hello.fingerprint = fingerprint_;
  hello.call = call_;
  if (with_declaration) {
    hello.declaration = std::make_unique<wire::DeclarationT>(options_.declaration);
  }
  socket_.send(envelope("", make_message(std::move(hello))));
}

void ControlLink::send(wire::MessageT message) {
  if (!is_welcome_) {
    unsent_.push_back(std::move(message));
    return;
  }
  socket_.send(envelope("", message));
}

void ControlLink::watch_server(const std::string& process) {
  socket_.watch("", peer_timeout_ * 7 / 10, process);
}

ControlLink::Changes ControlLink::process_events() {
  for (bool busy = true; busy;) {
    busy = false;
    if (const auto event = socket_.link_event()) {
      busy = true;
      const bool was_connected =
          std::exchange(is_connected_, *event == wire::LinkEvent::kConnected);
      if (is_connected_) {
        lost_before_welcome_.reset();
        ++call_;
        send_hello(/*with_declaration=*/false);
        watch_server("");
      } else if (incarnation_ != 0) {
        is_welcome_ = false;
        reconnect_.begin();
      } else if (was_connected) {
        lost_before_welcome_ = Deadline::after(options_.server_timeout);
      }
    }
    if (const auto received = socket_.receive()) {
      busy = true;
      on_message(received->header);
    }
    socket_.flush();
  }
  return std::exchange(changes_, {});
}

void ControlLink::on_welcome(const wire::WelcomeT& welcome) {
  // The Welcome of a lost connection: the batches after it are void.
  if (welcome.call != call_) return;
  if (options_.insists_on_peer_timeout &&
      welcome.peer_timeout_ms != options_.peer_timeout.count()) {
    return state_.fail(
        fmt::format("--peer-timeout: {} has {}, and this worker has {}; give "
                    "all tasks the same timeout",
                    name(), in_seconds(std::chrono::milliseconds(welcome.peer_timeout_ms)),
                    in_seconds(options_.peer_timeout)),
        FailureKind::kUsage);
  }
  is_welcome_ = true;
  reconnect_.end();
  incarnation_ = welcome.incarnation;
  bool is_first = false;
  {
    const std::lock_guard lock(state_.mutex);
    is_first = !state_.welcome.has_value();
    if (is_first) state_.welcome = welcome;
  }
  changes_.is_welcome_again = !is_first;
  if (is_first) {
    if (welcome.peer_timeout_ms > 0) {
      peer_timeout_ = std::chrono::milliseconds(welcome.peer_timeout_ms);
    }
    socket_.set_interval(peer_timeout_ / 10);
  }
  watch_server(welcome.process);
  changes_.addresses.emplace();
  for (const auto& server : welcome.servers) changes_.addresses->push_back(*server);
  for (const wire::MessageT& unsent : std::exchange(unsent_, {})) {
    socket_.send(envelope("", unsent));
  }
  state_.changed.notify_all();
}

void ControlLink::on_message(const wire::MessageT& message) {
  const wire::BodyUnion& body = message.body;
  std::unique_lock lock(state_.mutex);
  switch (body.type) {
    case wire::Body::Welcome:
      lock.unlock();
      return on_welcome(*body.AsWelcome());
    case wire::Body::DeclarationRequest:
      lock.unlock();
      return send_hello(/*with_declaration=*/true);
    case wire::Body::Roster:
      changes_.addresses.emplace();
      for (const auto& server : body.AsRoster()->servers) changes_.addresses->push_back(*server);
      break;
    case wire::Body::Refused: {
      const wire::RefusedT& refused = *body.AsRefused();
      lock.unlock();
      if (refused.is_over) return state_.fail(refused.line, FailureKind::kJobOver);
      return state_.fail(refused.line,
                         refused.is_usage_error ? FailureKind::kUsage : FailureKind::kPeer);
    }
    case wire::Body::Failing:
      lock.unlock();
      return state_.fail(body.AsFailing()->reason);
    case wire::Body::Start:
      changes_.start = position_of(*body.AsStart());
      return;
    case wire::Body::RollBack:
      // The message RollBack makes all earlier messages of shard 0 void.
      changes_.start.reset();
      changes_.assignment.reset();
      changes_.addresses.reset();
      changes_.rolled_back = body.AsRollBack()->snapshot;
      roll_back_incarnation_ = body.AsRollBack()->incarnation;
      return;
    case wire::Body::Leases: {
      // Leases of a lost connection are void: this worker's last Hello did not list their batches,
      // so shard 0 gives them to other workers.
      if (!is_welcome_) return;
      const wire::LeasesT& leases = *body.AsLeases();
      for (const auto& range : leases.ranges) state_.leases.push_back(from_wire(range));
      if (leases.finished) state_.leases_finished = true;
      state_.all_granted = leases.all_granted;
      if (leases.status) state_.status = *leases.status;
      break;
    }
    case wire::Body::Assignment:
      changes_.assignment = *body.AsAssignment();
      return;
    case wire::Body::Exchanged: {
      std::vector<std::string> texts;
      for (const auto& text : body.AsExchanged()->texts) {
        texts.emplace_back(text->text.begin(), text->text.end());
      }
      state_.exchanged[body.AsExchanged()->round] = std::move(texts);
      break;
    }
    case wire::Body::Finished:
      state_.finished = true;
      state_.leases_finished = true;
      break;
    default:
      return;
  }
  lock.unlock();
  state_.changed.notify_all();
}

void ControlLink::check_timeouts() {
  // While shard 0 sends messages, this worker waits longer to be accepted: shard 0 itself reports
  // which task is missing.
  const auto lost = socket_.lost();
  const bool is_server_alive = is_connected_ && lost.empty() && !give_up_by_.passed();
  if (incarnation_ == 0 && join_by_.passed() && !is_server_alive) {
    return state_.fail(fmt::format("{} did not accept this worker within {}{}", name(),
                                   in_seconds(join_by_.timeout()),
                                   socket_.why_no_answer(options_.rendezvous)));
  }
  if (incarnation_ == 0 && lost_before_welcome_ && lost_before_welcome_->passed()) {
    return state_.fail(
        fmt::format("{}: its connection closed before all tasks had registered, and it did not "
                    "come back within {}",
                    name(), in_seconds(lost_before_welcome_->timeout())));
  }
  // Shard 0 is stopped or unreachable. Heartbeats continue in case it still receives them. If the
  // connection did not break and shard 0 sends again, it still knows this worker.
  if (is_welcome_ && !lost.empty()) reconnect_.begin(lost.begin()->second);
  if (is_welcome_ && lost.empty()) reconnect_.end();
  if (const auto reason = reconnect_.expired(name(), options_.declaration.writes_checkpoints)) {
    return state_.fail(*reason);
  }
}

void ControlLink::extend_deadlines(std::chrono::nanoseconds suspended) {
  reconnect_.extend(suspended);
}

}  // namespace syncopate::ps
