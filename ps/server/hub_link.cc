#include "ps/server/hub_link.h"

#include <poll.h>
#include <unistd.h>

#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/resume_advice.h"
#include "ps/net/endpoint.h"
#include "ps/server/stop_patience.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick(20);
// Between two looks at what was trained: steps of small networks follow each other faster than this
// thread need run.
constexpr milliseconds kRest(2);
constexpr milliseconds kAbsence(500);

}  // namespace

HubLink::HubLink(const ServerOptions& options, DataService& data, ServerDuties& duties,
                 std::function<bool()> stop, std::function<void(const std::string&)> note)
    : options_(options),
      data_(data),
      duties_(duties),
      stop_(std::move(stop)),
      note_(std::move(note)),
      socket_(wire::Socket::connect(context_, options.rendezvous, "")),
      next_heartbeat_(Deadline::after(options.peer_timeout / 10)),
      silent_until_(Deadline::after(options.rendezvous_timeout)),
      absence_("this server", longest_absence(), stop_) {}

std::chrono::milliseconds HubLink::longest_absence() const {
  return options_.servers_return ? options_.peer_timeout + options_.worker_patience
                                 : options_.peer_timeout * 8 / 10;
}

std::string HubLink::name() const { return "server 0 at " + to_string(options_.rendezvous); }

void HubLink::greet() {
  wire::HelloT hello;
  hello.nonce = options_.nonce;
  hello.role = 1;
  hello.index = options_.index;
  hello.world_size = options_.workers;
  hello.num_servers = options_.servers;
  hello.host = own_host_name();
  hello.pid = getpid();
  hello.server = std::make_unique<wire::ServerAddressT>(duties_.address());
  hello.incarnation = is_welcome_ ? hello.server->incarnation : 0;
  hello.snapshots = duties_.snapshots();
  socket_->send(wire::envelope("", make_message(std::move(hello))));
}

void HubLink::tell(wire::MessageT message) {
  if (is_let_in_) {
    socket_->send(wire::envelope("", message));
  } else {
    untold_.push_back(std::move(message));
  }
}

void HubLink::run() {
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

void HubLink::serve() {
  auto last_round = Deadline::Clock::now();
  StopPatience patience(stop_, note_);
  Deadline rested = Deadline::after(milliseconds(0));
  while (!duties_.is_finished() && !duties_.failure()) {
    // A negative descriptor is passed over.
    const bool is_resting = !rested.passed();
    std::vector<pollfd> polled{{is_resting ? -1 : data_.descriptor(), POLLIN, 0},
                               {duties_.descriptor(), POLLIN, 0}};
    for (const int descriptor : socket_->descriptors()) polled.push_back({descriptor, POLLIN, 0});
    poll(polled.data(), polled.size(), static_cast<int>((is_resting ? kRest : kTick).count()));
    if (polled.front().revents != 0) rested = Deadline::after(kRest);
    const auto now = Deadline::Clock::now();
    // We did not run for a while: what was not heard meanwhile is nobody's fault.
    if (now - last_round > kAbsence && is_welcome_) {
      silent_until_ = Deadline::after(longest_absence());
      absence_.forgive(now - last_round);
    }
    last_round = now;
    round();
    watch_time();
    patience.check(is_welcome_, true);
  }
  if (duties_.failure()) throw PeerError(*duties_.failure());
}

void HubLink::round() {
  for (bool busy = true; busy;) {
    busy = false;
    if (const auto event = socket_->link_event()) {
      busy = true;
      is_let_in_ = false;
      if (is_welcome_) absence_.begin();
      if (*event == wire::LinkEvent::kConnected) greet();
    }
    if (const auto envelope = socket_->receive()) {
      busy = true;
      silent_until_ = Deadline::after(longest_absence());
      if (const auto message = wire::decode(envelope->frames.front().bytes())) {
        if (message->body.type == wire::Body::Welcome) {
          is_welcome_ = is_let_in_ = true;
          absence_.end();
          for (wire::MessageT& untold : std::exchange(untold_, {})) tell(std::move(untold));
        }
        duties_.obey(*message);
      }
    }
    socket_->flush();
  }
  data_.take_news();  // steps end on shard 0 alone
  for (wire::MessageT& reply : duties_.take_replies()) tell(std::move(reply));
}

void HubLink::watch_time() {
  const bool has_checkpoints = !options_.snapshot_dir.empty();
  if (silent_until_.passed()) {
    throw PeerError(name() + (is_welcome_ ? " has been away for " : " did not answer within ") +
                    in_seconds(silent_until_.patience()) + resume_advice(has_checkpoints));
  }
  if (const auto reason = absence_.verdict(name(), has_checkpoints)) throw PeerError(*reason);
  if (!next_heartbeat_.passed()) return;
  next_heartbeat_ = Deadline::after(options_.peer_timeout / 10);
  if (is_let_in_) socket_->send(wire::envelope("", make_message(wire::HeartbeatT{})));
}

}  // namespace syncopate::ps
