#include "ps/client/io_thread.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <limits>
#include <utility>

namespace syncopate::ps {
namespace {

using std::chrono::milliseconds;

// How often timeouts are checked.
constexpr milliseconds kCheckInterval(20);
// A longer time between two passes of the I/O thread's loop means that the thread was stopped or
// starved.
constexpr milliseconds kSuspended(500);

constexpr std::uint32_t kControl = std::numeric_limits<std::uint32_t>::max() - 1;
constexpr std::uint32_t kWake = std::numeric_limits<std::uint32_t>::max();

}  // namespace

wire::MessageT make_lease_request() {
  wire::LeaseRequestT request;
  request.count = 1;
  return wire::make_message(std::move(request));
}

IoThread::IoThread(const ClientOptions& options, ClientState& state)
    : options_(options),
      state_(state),
      control_(state_, options_),
      wake_registration_(readable_, {messages_.descriptor(), requests_.descriptor()}, kWake),
      control_registration_(readable_, control_.descriptors(), kControl) {
  for (int shard = 0; shard < options_.servers; ++shard) {
    links_.push_back(std::make_unique<ShardLink>(context_, readable_, state_, options_, shard));
  }
  thread_ = std::jthread([this](const std::stop_token& stop) {
    try {
      run(stop);
    } catch (const std::exception& error) {
      state_.fail(error.what());
    }
  });
}

IoThread::~IoThread() {
  thread_.request_stop();
  messages_.wake();
}

void IoThread::send_control(wire::MessageT message) { messages_.post(std::move(message)); }

void IoThread::send(std::vector<OutgoingRequest> requests) { requests_.post(std::move(requests)); }

void IoThread::send(OutgoingRequest request) {
  std::vector<OutgoingRequest> one;
  one.push_back(std::move(request));
  requests_.post(std::move(one));
}

void IoThread::run(const std::stop_token& stop) {
  auto last_round = Deadline::Clock::now();
  Deadline next_check = Deadline::after(kCheckInterval);
  while (!stop.stop_requested()) {
    const std::vector<std::uint32_t> readable = readable_.wait(kCheckInterval);
    const auto now = Deadline::Clock::now();
    if (now - last_round > kSuspended) {
      control_.extend_deadlines(now - last_round);
      for (const auto& link : links_) link->extend_deadlines(now - last_round);
    }
    last_round = now;
    for (const std::uint32_t number : readable) process_events(number);
    if (must_send_ready_ &&
        std::ranges::all_of(links_, [](const auto& link) { return link->is_welcome(); })) {
      must_send_ready_ = false;
      send_ready();
    }
    if (!next_check.passed()) continue;
    next_check = Deadline::after(kCheckInterval);
    check_timeouts();
  }
  // The last messages, such as the reason of a failure, are sent before the I/O thread ends.
  process_queues();
  control_.process_events();
}

void IoThread::process_events(std::uint32_t number) {
  if (number == kWake) return process_queues();
  if (number == kControl) return on_control_changes(control_.process_events());
  links_[number]->process_events();
}

void IoThread::check_timeouts() {
  for (const auto& link : links_) link->check_timeouts();
  control_.check_timeouts();
}

void IoThread::process_queues() {
  for (wire::MessageT& message : messages_.take()) send_and_remember(std::move(message));
  for (std::vector<OutgoingRequest>& together : requests_.take()) {
    for (OutgoingRequest& outgoing : together) {
      if (is_void(outgoing)) continue;
      links_[static_cast<std::size_t>(outgoing.shard)]->send(std::move(outgoing.request));
    }
  }
}

bool IoThread::is_void(const OutgoingRequest& outgoing) {
  const std::lock_guard lock(state_.mutex);
  if (outgoing.roll_backs != state_.roll_backs) return true;
  if (outgoing.request.kind != ShardRequest::Kind::kReadSnapshot) return false;
  const std::uint64_t snapshot = outgoing.request.message.body.AsReadSnapshot()->snapshot;
  return snapshot != wire::kLiveSnapshot && snapshot != state_.assigned_snapshot;
}

void IoThread::send_and_remember(wire::MessageT message) {
  switch (message.body.type) {
    case wire::Body::Ready:
      return send_ready();
    case wire::Body::Initialised:
      awaits_start_ = true;
      initialised_ = *message.body.AsInitialised();
      break;
    case wire::Body::StopRequest:
      stop_request_ = *message.body.AsStopRequest();
      break;
    case wire::Body::Leaving:
      is_leaving_ = true;
      break;
    default:
      break;
  }
  control_.send(std::move(message));
}

void IoThread::send_ready() {
  awaits_start_ = true;
  wire::ReadyT ready;
  ready.sequence = sequence_at_roll_back_;
  ready.incarnation = control_.roll_back_incarnation();
  control_.send(wire::make_message(std::move(ready)));
}

// Repeats messages after the control connection broke or shard 0 was started again: shard 0 may not
// have received a message that it has not answered.
void IoThread::send_unanswered_again() {
  if (initialised_) control_.send(wire::make_message(wire::InitialisedT(*initialised_)));
  if (awaits_start_) send_ready();
  // The stop request is sent again even if shard 0 has answered it: a restarted shard 0 may
  // continue from a time before the request.
  if (stop_request_) control_.send(wire::make_message(wire::StopRequestT(*stop_request_)));
  if (is_leaving_) control_.send(wire::make_message(wire::LeavingT{}));
  bool wants_lease = false;
  std::optional<wire::ExchangeT> exchange;
  {
    const std::lock_guard lock(state_.mutex);
    wants_lease = state_.wants_lease;
    exchange = state_.open_exchange;
  }
  if (wants_lease) control_.send(make_lease_request());
  if (exchange) control_.send(wire::make_message(*std::move(exchange)));
}

void IoThread::on_control_changes(const ControlLink::Changes& changes) {
  if (changes.rolled_back) roll_back(*changes.rolled_back);
  if (changes.addresses) {
    for (const wire::ServerAddressT& address : *changes.addresses) {
      if (address.index < 0 || address.index >= options_.servers) continue;
      links_[static_cast<std::size_t>(address.index)]->set_address(address, control_.incarnation());
    }
  }
  if (changes.assignment) assign(*changes.assignment);
  if (changes.start) start_from(*changes.start);
  if (changes.is_welcome_again) send_unanswered_again();
}

void IoThread::roll_back(std::uint64_t snapshot) {
  // The sequence of the last push is read once, so that the shards and shard 0 are sent the same
  // number. The training thread may still begin a step, but its pushes will be void.
  sequence_at_roll_back_ = state_.sequence.load(std::memory_order_relaxed);
  for (const auto& link : links_) link->roll_back(sequence_at_roll_back_);
  must_send_ready_ = true;
  is_leaving_ = false;
  {
    const std::lock_guard lock(state_.mutex);
    ++state_.roll_backs;
    state_.is_rolling_back = true;
    state_.leases.clear();
    state_.leased_batches.clear();
    state_.leases_finished = state_.all_granted = false;
    state_.assignments.clear();
    state_.assigned_snapshot = 0;
    state_.sums.reset();
    state_.open_exchange.reset();
    state_.exchanged.clear();
    // Synchronous workers exchange texts in numbered rounds (Client::exchange()), and had reached
    // different rounds before the roll-back. All continue with a number that depends on the
    // snapshot only.
    constexpr int kRoundBitsPerSnapshot = 20;
    state_.round = snapshot << kRoundBitsPerSnapshot;
  }
  state_.changed.notify_all();
}

void IoThread::start_from(const RunPosition& start) {
  awaits_start_ = false;
  initialised_.reset();
  bool was_rolling_back = false;
  {
    const std::lock_guard lock(state_.mutex);
    was_rolling_back = std::exchange(state_.is_rolling_back, false);
    if (!state_.start || was_rolling_back) state_.start = start;
    for (ClientState::Bucket& bucket : state_.buckets) bucket.awaited |= was_rolling_back;
  }
  if (was_rolling_back) {
    const auto& buckets = options_.declaration.buckets;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      links_[static_cast<std::size_t>(buckets[b].owner())]->send(
          pull_request(static_cast<int>(b), options_.declaration));
    }
  }
  state_.changed.notify_all();
}

void IoThread::assign(const wire::AssignmentT& assignment) {
  {
    std::unique_lock lock(state_.mutex);
    if (assignment.snapshot == state_.assigned_snapshot) {
      if (!state_.is_assignment_done) return;
      wire::AssignmentDoneT done;
      done.snapshot = assignment.snapshot;
      done.rules = state_.rules;
      lock.unlock();
      return control_.send(wire::make_message(std::move(done)));
    }
  }
  // Requests for an earlier snapshot are dropped before their callers stop waiting: the shard links
  // must not write to the callers' memory afterwards.
  for (const auto& link : links_) link->drop_snapshot_reads_except(assignment.snapshot);
  {
    const std::lock_guard lock(state_.mutex);
    state_.assignments.assign(1, assignment);
    state_.assigned_snapshot = assignment.snapshot;
    state_.is_assignment_done = false;
  }
  state_.changed.notify_all();
}

}  // namespace syncopate::ps
