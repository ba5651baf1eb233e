#include "ps/client/control_link.h"

#include <unistd.h>

#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/net/addresses.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

}  // namespace

ControlLink::ControlLink(wire::Context& context, ClientBoard& board, const ClientOptions& options)
    : board_(board),
      options_(options),
      socket_(wire::Socket::connect(context, options.rendezvous, "")),
      peer_timeout_(options.peer_timeout),
      meet_by_(Deadline::after(options.rendezvous_timeout)),
      give_up_by_(Deadline::after(options.rendezvous_timeout + options.peer_timeout)),
      next_heartbeat_(Deadline::after(peer_timeout_ / 10)),
      silent_until_(Deadline::after(options.rendezvous_timeout)),
      absence_("this worker", options.server_patience, options.asked_to_stop) {}

std::string ControlLink::name() const { return "server 0 at " + to_string(options_.rendezvous); }

void ControlLink::greet() {
  wire::HelloT hello;
  hello.nonce = options_.nonce;
  hello.role = 0;
  hello.index = options_.index;
  hello.world_size = options_.workers;
  hello.num_servers = options_.servers;
  hello.host = own_host_name();
  hello.pid = getpid();
  hello.incarnation = incarnation_;
  hello.sequence = last_push_;
  {
    const std::lock_guard lock(board_.mutex);
    for (const SampleRange& range : board_.leases) hello.held.push_back(to_wire(range));
    for (const SampleRange& range : board_.in_hand) hello.held.push_back(to_wire(range));
  }
  hello.declaration = std::make_unique<wire::DeclarationT>(options_.declaration);
  socket_->send(envelope("", make_message(std::move(hello))));
}

void ControlLink::tell(wire::MessageT message) {
  if (!is_welcome_) {
    untold_.push_back(std::move(message));
    return;
  }
  socket_->send(envelope("", message));
}

ControlLink::News ControlLink::run() {
  for (bool busy = true; busy;) {
    busy = false;
    if (const auto event = socket_->link_event()) {
      busy = true;
      is_connected_ = *event == wire::LinkEvent::kConnected;
      if (is_connected_) {
        greet();
      } else if (incarnation_ != 0) {
        is_welcome_ = false;
        absence_.begin();
      }
    }
    if (const auto envelope = socket_->receive()) {
      busy = true;
      silent_until_ = Deadline::after(peer_timeout_ * 7 / 10);
      // Whoever was only stopped for a while knows us still, or says that it does not.
      if (is_welcome_) absence_.end();
      if (const auto message = wire::decode(envelope->frames.front().bytes())) hear(*message);
    }
    socket_->flush();
  }
  return std::exchange(news_, {});
}

void ControlLink::hear(const wire::MessageT& message) {
  const wire::BodyUnion& body = message.body;
  std::unique_lock lock(board_.mutex);
  switch (body.type) {
    case wire::Body::Welcome: {
      const wire::WelcomeT& welcome = *body.AsWelcome();
      if (options_.insists_on_peer_timeout &&
          welcome.peer_timeout_ms != options_.peer_timeout.count()) {
        const std::string line = "--peer-timeout: " + name() + " has " +
                                 in_seconds(milliseconds(welcome.peer_timeout_ms)) +
                                 ", and this worker " + in_seconds(options_.peer_timeout) +
                                 "; give all tasks the same";
        lock.unlock();
        return board_.fail(line, FailureKind::kUsage);
      }
      is_welcome_ = true;
      absence_.end();
      incarnation_ = welcome.incarnation;
      news_.is_welcome_again = board_.welcome.has_value();
      if (!board_.welcome) {
        board_.welcome = welcome;
        if (welcome.peer_timeout_ms > 0) peer_timeout_ = milliseconds(welcome.peer_timeout_ms);
      }
      news_.addresses.emplace();
      for (const auto& server : welcome.servers) news_.addresses->push_back(*server);
      for (const wire::MessageT& untold : std::exchange(untold_, {})) {
        socket_->send(envelope("", untold));
      }
      break;
    }
    case wire::Body::Roster:
      news_.addresses.emplace();
      for (const auto& server : body.AsRoster()->servers) news_.addresses->push_back(*server);
      break;
    case wire::Body::Refused: {
      const wire::RefusedT& refused = *body.AsRefused();
      lock.unlock();
      if (refused.is_over) return board_.fail(refused.line, FailureKind::kJobOver);
      return board_.fail(refused.line,
                         refused.is_usage_error ? FailureKind::kUsage : FailureKind::kPeer);
    }
    case wire::Body::Failing:
      lock.unlock();
      return board_.fail(body.AsFailing()->reason);
    case wire::Body::Start:
      news_.start = position_of(*body.AsStart());
      return;
    case wire::Body::RollBack:
      // Nothing of what came before it counts.
      news_.start.reset();
      news_.appointment.reset();
      news_.addresses.reset();
      news_.rolled_back = body.AsRollBack()->cut;
      back_as_ = body.AsRollBack()->incarnation;
      return;
    case wire::Body::Leases: {
      // Of a connection that broke: we did not name them in our last Hello, so others have them.
      if (!is_welcome_) return;
      const wire::LeasesT& leases = *body.AsLeases();
      for (const auto& range : leases.ranges) board_.leases.push_back(from_wire(range));
      if (leases.finished) board_.leases_finished = true;
      if (leases.status) board_.status = *leases.status;
      break;
    }
    case wire::Body::Appointment:
      news_.appointment = *body.AsAppointment();
      return;
    case wire::Body::Exchanged: {
      std::vector<std::string> texts;
      for (const auto& text : body.AsExchanged()->texts) {
        texts.emplace_back(text->text.begin(), text->text.end());
      }
      board_.exchanged[body.AsExchanged()->round] = std::move(texts);
      break;
    }
    case wire::Body::Finished:
      board_.finished = true;
      board_.leases_finished = true;
      break;
    default:
      return;
  }
  lock.unlock();
  board_.changed.notify_all();
}

void ControlLink::tick(std::int64_t step, std::uint64_t sequence) {
  last_push_ = sequence;
  // As long as it is heard of it waits too, and knows for whom.
  const bool is_heard = is_connected_ && !silent_until_.passed() && !give_up_by_.passed();
  if (incarnation_ == 0 && meet_by_.passed() && !is_heard) {
    return board_.fail(name() + " did not let this worker in within " +
                       in_seconds(meet_by_.patience()) +
                       "; is it running, and have all workers and servers been started?");
  }
  // Stopped, or cut off without a word: heartbeats go on, should it hear them.
  if (incarnation_ != 0 && is_welcome_ && silent_until_.passed()) absence_.begin();
  if (const auto reason = absence_.verdict(name(), options_.declaration.writes_checkpoints)) {
    return board_.fail(*reason);
  }
  if (!is_connected_ || !next_heartbeat_.passed()) return;
  next_heartbeat_ = Deadline::after(peer_timeout_ / 10);
  wire::HeartbeatT heartbeat;
  heartbeat.step = step;
  socket_->send(envelope("", make_message(std::move(heartbeat))));
}

void ControlLink::forgive(std::chrono::nanoseconds slept) {
  silent_until_ = Deadline::after(peer_timeout_ * 7 / 10);
  absence_.forgive(slept);
}

void ControlLink::append_descriptors(std::vector<int>& descriptors) const {
  for (const int descriptor : socket_->descriptors()) descriptors.push_back(descriptor);
}

}  // namespace syncopate::ps
