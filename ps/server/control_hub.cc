#include "ps/server/control_hub.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/coordinator/resume_advice.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/net/endpoint.h"
#include "ps/server/start_count.h"
#include "ps/server/stop_patience.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick(20);
// Between two looks at what was trained: steps of small networks follow each other faster than this
// thread need run.
constexpr milliseconds kRest(2);
// Longer between two rounds: the process was stopped, or starved.
constexpr milliseconds kAbsence(500);
// Whoever does not end meanwhile is stopped, or no task of ours.
constexpr milliseconds kFarewell(1000);
constexpr milliseconds kNextWord(50);

std::unique_ptr<wire::Socket> open_socket(wire::Context& context, ServerOptions& options) {
  if (options.listening) return wire::Socket::listen(context, std::move(options.listening));
  const Endpoint& named = options.rendezvous;
  return wire::Socket::listen(context, listening_endpoint(named.host, named.port));
}

CoordinatorOptions coordinator_options(const ServerOptions& options) {
  return {.nonce = options.nonce,
          .servers = options.servers,
          .peer_timeout_ms = options.peer_timeout.count(),
          .writes_snapshots = !options.snapshot_dir.empty(),
          .life = count_starts(options.snapshot_dir, options.nonce),
          .late_workers = options.late_workers};
}

}  // namespace

ControlHub::ControlHub(ServerOptions& options, DataService& data, ServerDuties& duties,
                       std::function<void(const std::string&)> note)
    : options_(options),
      data_(data),
      duties_(duties),
      note_(std::move(note)),
      socket_(open_socket(context_, options)),
      coordinator_(coordinator_options(options)),
      meet_by_(Deadline::after(options.rendezvous_timeout)),
      next_heartbeat_(Deadline::after(options.peer_timeout / 10)) {
  for (const std::vector<std::byte>& saved : duties.saved_jobs()) {
    coordinator_.restore(saved);
    is_restarted_ = true;
  }
  if (is_restarted_) note_("goes on with the job that snapshots were kept of");
  wire::HelloT own;
  own.nonce = options.nonce;
  own.role = 1;
  own.index = 0;
  own.world_size = options.workers;
  own.num_servers = options.servers;
  own.server = std::make_unique<wire::ServerAddressT>(duties.address());
  own.snapshots = duties.snapshots();
  coordinator_.admit(own);
  settle();
}

void ControlHub::run(const std::function<bool()>& stop) {
  try {
    serve(stop);
  } catch (const std::exception& error) {
    // The others hear why before this one is gone. The second loss is for good.
    const Party own{Party::Role::kServer, 0};
    coordinator_.lose(own, error.what());
    coordinator_.lose(own, error.what());
    say_farewell();
    throw;
  }
  say_farewell();
  if (coordinator_.failure()) throw PeerError(*coordinator_.failure());
}

void ControlHub::serve(const std::function<bool()>& stop) {
  auto last_round = Deadline::Clock::now();
  StopPatience patience(stop, note_);
  Deadline rested = Deadline::after(milliseconds(0));
  while (!coordinator_.is_over()) {
    // A negative descriptor is passed over.
    const bool is_resting = !rested.passed();
    std::vector<pollfd> polled{{is_resting ? -1 : data_.descriptor(), POLLIN, 0},
                               {duties_.descriptor(), POLLIN, 0}};
    for (const int descriptor : socket_->descriptors()) polled.push_back({descriptor, POLLIN, 0});
    poll(polled.data(), polled.size(), static_cast<int>((is_resting ? kRest : kTick).count()));
    if (polled.front().revents != 0) rested = Deadline::after(kRest);
    const auto now = Deadline::Clock::now();
    if (now - last_round > kAbsence) forgive();
    last_round = now;
    round();
    if (duties_.failure()) throw PeerError(*duties_.failure());
    if (coordinator_.is_over()) continue;
    patience.check(coordinator_.has_started(), coordinator_.live_workers() > 0);
  }
}

// All end by the last word, and with this socket is lost what they have not read by then. So it is
// said until each connection has ended, which shows in that nothing can be sent any more.
void ControlHub::say_farewell() {
  // Started once more, this one would wait for the lost variables again.
  if (coordinator_.has_lost_variables()) duties_.forget_snapshots();
  settle();
  for (const auto& [party, link] : links_) last_words_.emplace(link.peer, last_word());
  const auto stopped_by = stop_kind_from_wire(coordinator_.status().stopped_by);
  const bool is_complete =
      !coordinator_.failure() && stopped_by.value_or(StopKind::kTimeIsUp) == StopKind::kTimeIsUp;
  if (is_complete) {
    wire::RefusedT over;
    over.line = "this worker was stopped or cut off, and the job was completed without it";
    over.is_over = true;
    for (const std::string& peer : silent_workers_) {
      last_words_.emplace(peer, wire::make_message(wire::RefusedT(over)));
    }
  }
  const Deadline farewell = Deadline::after(kFarewell);
  Deadline next_word = Deadline::after(kNextWord);
  while (!farewell.passed() && !last_words_.empty()) {
    std::vector<pollfd> polled;
    for (const int descriptor : socket_->descriptors()) polled.push_back({descriptor, POLLIN, 0});
    poll(polled.data(), polled.size(), static_cast<int>(kTick.count()));
    socket_->flush();
    while (const auto envelope = socket_->receive()) hear_farewell(*envelope);
    if (!next_word.passed()) continue;
    next_word = Deadline::after(kNextWord);
    std::erase_if(last_words_, [this](const auto& entry) {
      return !socket_->send(wire::envelope(entry.first, entry.second));
    });
  }
}

wire::MessageT ControlHub::last_word() const {
  if (!coordinator_.failure()) return wire::make_message(wire::FinishedT{});
  wire::FailingT failing;
  failing.reason = *coordinator_.failure();
  return wire::make_message(std::move(failing));
}

void ControlHub::hear_farewell(const wire::Envelope& envelope) {
  const auto message = wire::decode(envelope.frames.front().bytes());
  if (!message) return;
  if (message->body.type == wire::Body::Hello) {
    // Its connection broke, and it gets the word over this one; or it is new, and is told.
    const wire::HelloT& hello = *message->body.AsHello();
    const Party party{hello.role == 1 ? Party::Role::kServer : Party::Role::kWorker, hello.index};
    const bool is_known =
        links_.contains(party) && (party.role == Party::Role::kServer || hello.incarnation != 0);
    last_words_.insert_or_assign(envelope.peer,
                                 is_known ? last_word() : coordinator_.admit(hello).refusal);
    if (is_known) parties_[envelope.peer] = party;
    return;
  }
  const auto party = parties_.find(envelope.peer);
  const bool has_left = message->body.type == wire::Body::Leaving && party != parties_.end() &&
                        party->second.role == Party::Role::kServer;
  if (has_left || message->body.type == wire::Body::Failing) last_words_.erase(envelope.peer);
}

void ControlHub::round() {
  for (bool busy = true; busy;) {
    busy = false;
    if (const auto envelope = socket_->receive()) {
      busy = true;
      hear(*envelope);
    }
    socket_->flush();
  }
  for (const StepNews& news : data_.take_news()) {
    if (news.is_applied) {
      coordinator_.trained(news.worker, news.incarnation, news.push);
    } else {
      coordinator_.dropped(news.worker, news.incarnation, news.push);
    }
  }
  watch_time();
  settle();
}

void ControlHub::hear(const wire::Envelope& envelope) {
  const auto message = wire::decode(envelope.frames.front().bytes());
  if (!message) return;
  if (message->body.type == wire::Body::Hello)
    return admit(envelope.peer, *message->body.AsHello());
  const auto party = parties_.find(envelope.peer);
  if (party == parties_.end()) {
    wire::RefusedT refused;
    refused.line =
        "this task was silent for too long and was taken for dead; the job went on without it";
    socket_->send(wire::envelope(envelope.peer, make_message(std::move(refused))));
    return;
  }
  Link& link = links_.at(party->second);
  link.heard_by = Deadline::after(options_.peer_timeout * 7 / 10);
  if (message->body.type == wire::Body::Heartbeat) {
    link.step = message->body.AsHeartbeat()->step;
    return;
  }
  const Party from = party->second;
  const std::string name = describe_link(from, link);
  coordinator_.hear(from, *message);
  if (message->body.type == wire::Body::Failing && from.role == Party::Role::kServer &&
      !options_.servers_return) {
    coordinator_.lose(from, name + " failed: " + message->body.AsFailing()->reason);
  }
  if (message->body.type == wire::Body::Failing) {
    // It says no more, and its silence would be a second loss.
    parties_.erase(envelope.peer);
    links_.erase(from);
  }
  settle();
}

void ControlHub::admit(const std::string& peer, const wire::HelloT& hello) {
  if (hello.role == 1 && hello.index == 0) {
    wire::RefusedT refused;
    refused.line = "server 0 is this process, and whoever calls is another one (host " +
                   hello.host + ", pid " + std::to_string(hello.pid) +
                   "); give each server an index of its own";
    refused.is_usage_error = true;
    socket_->send(wire::envelope(peer, make_message(std::move(refused))));
    return;
  }
  const Coordinator::Admission admission = coordinator_.admit(hello);
  if (!admission.party) {
    socket_->send(wire::envelope(peer, admission.refusal));
    if (coordinator_.is_over()) last_words_.emplace(peer, admission.refusal);  // that is why
    return settle();
  }
  const auto old = links_.find(*admission.party);
  if (old != links_.end()) {
    parties_.erase(old->second.peer);
    const bool is_same = hello.incarnation != 0 || old->second.peer == peer;
    if (!is_same) replace(old->second.peer, describe(*admission.party), hello);
  }
  links_.insert_or_assign(*admission.party,
                          Link{.peer = peer,
                               .incarnation = admission.incarnation,
                               .heard_by = Deadline::after(options_.peer_timeout * 7 / 10),
                               .is_silent = false,
                               .ready_by = std::nullopt,
                               .host = hello.host,
                               .pid = hello.pid});
  parties_[peer] = *admission.party;
  settle();
}

// Should it still be there, it is another process with the same index.
void ControlHub::replace(const std::string& peer, const std::string& name,
                         const wire::HelloT& newcomer) {
  wire::RefusedT refused;
  refused.line = "another process (host " + newcomer.host + ", pid " +
                 std::to_string(newcomer.pid) + ") has come as " + name +
                 " in place of this one; give each task an index of its own";
  refused.is_usage_error = true;
  socket_->send(wire::envelope(peer, make_message(std::move(refused))));
}

void ControlHub::settle() {
  const Party own{Party::Role::kServer, 0};
  for (bool busy = true; busy;) {
    busy = false;
    for (const wire::MessageT& reply : duties_.take_replies()) {
      busy = true;
      coordinator_.hear(own, reply);
    }
    for (const Outgoing& outgoing : coordinator_.take_outgoing()) {
      busy = true;
      if (outgoing.to == own) {
        duties_.obey(outgoing.message);
      } else {
        send(outgoing);
      }
    }
  }
}

void ControlHub::send(const Outgoing& outgoing) {
  const auto link = links_.find(outgoing.to);
  if (link == links_.end()) return;
  if (outgoing.incarnation != 0) link->second.incarnation = outgoing.incarnation;
  socket_->send(wire::envelope(link->second.peer, outgoing.message));
}

std::string ControlHub::describe_link(const Party& party, const Link& link) const {
  return describe(party) + " (host " + link.host + ", pid " + std::to_string(link.pid) + ")";
}

void ControlHub::watch_links() {
  const std::vector<int> joining = coordinator_.joining();
  std::vector<std::pair<Party, std::string>> lost;
  for (auto& [party, link] : links_) {
    const bool joins = party.role == Party::Role::kWorker &&
                       std::ranges::find(joining, party.index) != joining.end();
    if (!joins) {
      link.ready_by.reset();
    } else if (!link.ready_by) {
      link.ready_by = Deadline::after(options_.join_timeout);
    } else if (link.ready_by->passed()) {
      lost.emplace_back(party, describe_link(party, link) +
                                   " was let in, and was not ready within " +
                                   in_seconds(options_.join_timeout));
      continue;
    }
    if (link.is_silent || !link.heard_by.passed()) continue;
    link.is_silent = true;
    const bool is_worker = party.role == Party::Role::kWorker;
    const std::int64_t step = is_worker ? link.step : coordinator_.status().step;
    lost.emplace_back(party, describe_link(party, link) + " was not heard of for " +
                                 in_seconds(link.heard_by.patience()) + ", last at step " +
                                 std::to_string(step));
  }
  for (const auto& [party, reason] : lost) {
    if (party.role == Party::Role::kWorker) silent_workers_.insert(links_.at(party).peer);
    parties_.erase(links_.at(party).peer);
    links_.erase(party);
    coordinator_.lose(party, reason);
    if (party.role == Party::Role::kServer && !options_.servers_return) {
      coordinator_.lose(party, reason);
    }
    if (!coordinator_.failure()) note_(reason);  // else it is what this server ends with
  }
}

void ControlHub::watch_time() {
  if (!coordinator_.has_started() && meet_by_.passed()) {
    coordinator_.end_rendezvous("within " + in_seconds(meet_by_.patience()) + " at " +
                                to_string(options_.rendezvous));
  }
  watch_links();
  const auto awaited = coordinator_.has_started() ? coordinator_.awaited() : std::nullopt;
  if (!awaited || coordinator_.is_over()) {
    patience_ends_.reset();
  } else if (!patience_ends_) {
    patience_ends_ = Deadline::after(options_.worker_patience);
  } else if (patience_ends_->passed()) {
    throw PeerError(*awaited + " did not come back within " +
                    in_seconds(patience_ends_->patience()) +
                    resume_advice(!options_.snapshot_dir.empty()));
  }
  if (!options_.snapshot_dir.empty() && coordinator_.has_started()) {
    // The first one at once: without any, a server that ends takes the job with it.
    if (!next_snapshot_) next_snapshot_ = Deadline::after(milliseconds(0));
    if (next_snapshot_->passed()) {
      coordinator_.request_snapshot();
      next_snapshot_ = Deadline::after(options_.snapshot_interval);
    }
  }
  if (!next_heartbeat_.passed()) return;
  StalenessHistogram all;
  for (const StalenessHistogram& worker : duties_.staleness()) all.merge(worker);
  coordinator_.note_staleness(all.mean(), all.max());
  next_heartbeat_ = Deadline::after(options_.peer_timeout / 10);
  for (const auto& [party, link] : links_) {
    socket_->send(wire::envelope(link.peer, make_message(wire::HeartbeatT{})));
  }
}

void ControlHub::forgive() {
  for (auto& [party, link] : links_) {
    link.heard_by = Deadline::after(options_.peer_timeout * 7 / 10);
    link.ready_by.reset();
  }
}

}  // namespace syncopate::ps
