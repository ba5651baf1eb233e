// The client's I/O thread: it alone uses the sockets.
#include <poll.h>

#include <chrono>

#include "ps/client/client_state.h"

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick(20);
// Longer between two rounds: the process was stopped, or starved.
constexpr milliseconds kAbsence(500);

}  // namespace

wire::MessageT lease_request() {
  wire::LeaseRequestT request;
  request.count = 1;
  return wire::make_message(std::move(request));
}

void Client::State::take_requests() {
  wake.clear();
  std::vector<wire::MessageT> messages;
  std::vector<Ask> asks;
  {
    const std::lock_guard lock(mutex);
    messages.swap(to_tell);
    asks.swap(to_ask);
  }
  for (wire::MessageT& message : messages) tell_shard_0(std::move(message));
  for (Ask& one : asks) {
    if (is_void(one)) continue;
    links[static_cast<std::size_t>(one.shard)]->ask(std::move(one.request));
  }
}

void Client::State::tell_shard_0(wire::MessageT message) {
  switch (message.body.type) {
    case wire::Body::Ready:
      return say_ready();
    case wire::Body::Initialised:
      awaits_start = true;
      first_values = *message.body.AsInitialised();
      break;
    case wire::Body::StopRequest:
      stop_request = *message.body.AsStopRequest();
      break;
    case wire::Body::Leaving:
      is_leaving = true;
      break;
    default:
      break;
  }
  control.tell(std::move(message));
}

void Client::State::say_ready() {
  awaits_start = true;
  wire::ReadyT ready;
  ready.sequence = ready_after;
  ready.incarnation = control.back_as();
  control.tell(wire::make_message(std::move(ready)));
}

// Asked before the asker knew that it belongs to the past.
bool Client::State::is_void(const Ask& ask) {
  const std::lock_guard lock(board.mutex);
  if (ask.roll_backs != board.roll_backs) return true;
  if (ask.request.kind != ShardRequest::Kind::kReadCut) return false;
  const std::uint64_t cut = ask.request.message.body.AsReadCut()->cut;
  return cut != wire::kLiveCut && cut != board.appointed_cut;
}

void Client::State::hear(const ControlLink::News& news) {
  if (news.rolled_back) rewind(*news.rolled_back);
  if (news.addresses) {
    for (const wire::ServerAddressT& address : *news.addresses) {
      if (address.index < 0 || address.index >= options.servers) continue;
      links[static_cast<std::size_t>(address.index)]->follow(address, control.incarnation());
    }
  }
  if (news.appointment) appoint(*news.appointment);
  if (news.start) go_on_from(*news.start);
  if (news.is_welcome_again) tell_again();
}

void Client::State::rewind(std::uint64_t cut) {
  // The shards and shard 0 hear the same number, though a step may begin meanwhile, in vain.
  ready_after = sequence.load(std::memory_order_relaxed);
  for (const auto& link : links) link->drop_all(ready_after);
  must_say_ready = true;
  is_leaving = false;
  {
    const std::lock_guard lock(mutex);
    open_exchange.reset();
  }
  {
    const std::lock_guard lock(board.mutex);
    ++board.roll_backs;
    board.is_rewinding = true;
    board.leases.clear();
    board.in_hand.clear();
    board.leases_finished = false;
    board.appointments.clear();
    board.appointed_cut = 0;
    board.sums.reset();
    board.exchanged.clear();
    // Workers in step exchange by rounds, and had not all got equally far.
    constexpr int kRoundsPerCut = 20;  // bits
    board.round = cut << kRoundsPerCut;
  }
  board.changed.notify_all();
}

void Client::State::go_on_from(const RunPosition& start) {
  awaits_start = false;
  first_values.reset();
  bool was_rewinding = false;
  {
    const std::lock_guard lock(board.mutex);
    was_rewinding = std::exchange(board.is_rewinding, false);
    if (!board.start || was_rewinding) board.start = start;
    for (ClientBoard::Bucket& bucket : board.buckets) bucket.awaited |= was_rewinding;
  }
  if (was_rewinding) {
    for (int b = 0; b < num_buckets(); ++b) {
      links[static_cast<std::size_t>(place(b).owner())]->ask(pull_of(b));
    }
  }
  board.changed.notify_all();
}

void Client::State::appoint(const wire::AppointmentT& appointment) {
  {
    std::unique_lock lock(board.mutex);
    if (appointment.cut == board.appointed_cut) {
      if (!board.is_appointment_done) return;
      lock.unlock();
      wire::AppointmentDoneT done;
      done.cut = appointment.cut;
      return control.tell(wire::make_message(std::move(done)));
    }
  }
  // An earlier copy is no more; nobody writes where whoever reads it then stops waiting.
  for (const auto& link : links) link->drop_copies_but(appointment.cut);
  {
    const std::lock_guard lock(board.mutex);
    board.appointments.assign(1, appointment);
    board.appointed_cut = appointment.cut;
    board.is_appointment_done = false;
  }
  board.changed.notify_all();
}

// The connection broke, or shard 0 was started anew: what it has not answered it may not have
// heard.
void Client::State::tell_again() {
  if (first_values) control.tell(wire::make_message(wire::InitialisedT(*first_values)));
  if (awaits_start) say_ready();
  // A shard 0 that was started anew may go on from before it heard of it.
  if (stop_request) control.tell(wire::make_message(wire::StopRequestT(*stop_request)));
  if (is_leaving) control.tell(wire::make_message(wire::LeavingT{}));
  bool wants_lease = false;
  {
    const std::lock_guard lock(board.mutex);
    wants_lease = board.wants_lease;
  }
  if (wants_lease) control.tell(lease_request());
  const std::lock_guard lock(mutex);
  if (open_exchange) control.tell(wire::make_message(wire::ExchangeT(*open_exchange)));
}

ShardRequest Client::State::pull_of(int bucket) const {
  return {.kind = ShardRequest::Kind::kPull,
          .bucket = bucket,
          .credit_bytes = (place(bucket).end() - place(bucket).begin()) *
                          static_cast<std::int64_t>(sizeof(float))};
}

void Client::State::wait_for_events() {
  std::vector<int> descriptors{wake.descriptor()};
  control.append_descriptors(descriptors);
  for (const auto& link : links) link->append_descriptors(descriptors);
  std::vector<pollfd> polled;
  for (const int descriptor : descriptors) polled.push_back({descriptor, POLLIN, 0});
  poll(polled.data(), polled.size(), static_cast<int>(kTick.count()));
}

void Client::State::serve(const std::stop_token& stop) {
  auto last_round = Deadline::Clock::now();
  while (!stop.stop_requested()) {
    wait_for_events();
    const auto now = Deadline::Clock::now();
    if (now - last_round > kAbsence) {
      control.forgive(now - last_round);
      for (const auto& link : links) link->forgive(now - last_round);
    }
    last_round = now;
    take_requests();
    hear(control.run());
    for (const auto& link : links) {
      link->run();
      link->tick();
    }
    if (must_say_ready && has_met_all()) {
      must_say_ready = false;
      say_ready();
    }
    control.tick(step.load(std::memory_order_relaxed), sequence.load(std::memory_order_relaxed));
  }
  // What was told last, such as why we end, still leaves.
  take_requests();
  control.run();
}

void Client::State::ask_and_wait(std::unique_lock<std::mutex>& lock, std::vector<Ask> asks,
                                 std::optional<std::uint64_t> cut) {
  board.require_current(lock);
  for (Ask& one : asks) one.roll_backs = board.roll_backs_known;
  board.requests_open = static_cast<int>(asks.size());
  lock.unlock();
  ask(std::move(asks));
  lock.lock();
  const auto is_withdrawn = [&] {
    return cut && *cut != wire::kLiveCut && board.appointed_cut != *cut;
  };
  board.wait(lock, [&] { return board.requests_open == 0 || is_withdrawn(); });
  if (is_withdrawn()) throw CutWithdrawn();
}

}  // namespace syncopate::ps
