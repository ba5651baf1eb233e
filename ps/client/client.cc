#include "ps/client/client.h"

#include "models/base/deadline.h"
#include "ps/client/client_state.h"
#include "ps/coordinator/wire_conversion.h"
#include "ps/net/addresses.h"

namespace syncopate::ps {
namespace {

constexpr std::chrono::milliseconds kFarewell(2000);

}  // namespace

Client::Client(const ClientOptions& options) {
  await_host(options.rendezvous, Deadline::after(options.rendezvous_timeout));
  state_ = std::make_unique<State>(options);
  State& state = *state_;
  state.thread = std::jthread([&state](const std::stop_token& stop) {
    try {
      state.serve(stop);
    } catch (const std::exception& error) {
      state.board.fail(error.what());
    }
  });
  std::unique_lock lock(state.board.mutex);
  // Should the servers go back meanwhile, nothing is void for somebody who has not begun.
  state.board.changed.wait(lock, [&] {
    const bool has_met = state.board.welcome && state.board.shards_met == options.servers;
    return has_met || state.board.failure.has_value();
  });
  state.board.throw_if_failed();
}

Client::~Client() {
  state_->thread.request_stop();
  state_->wake.notify();
}

bool Client::initialises() const {
  const std::lock_guard lock(state_->board.mutex);
  return state_->board.welcome->initialises;
}

std::uint32_t Client::incarnation() const {
  const std::lock_guard lock(state_->board.mutex);
  return state_->board.welcome->incarnation;
}

void Client::initialised(const RunPosition& start) {
  wire::InitialisedT message;
  set_position(message, start);
  state_->tell(wire::make_message(std::move(message)));
}

RunPosition Client::wait_start() {
  if (!initialises()) state_->tell(wire::make_message(wire::ReadyT{}));
  ClientBoard& board = state_->board;
  std::unique_lock lock(board.mutex);
  board.changed.wait(lock, [&] {
    return board.failure.has_value() || (board.start.has_value() && !board.is_rewinding);
  });
  board.throw_if_failed();
  board.roll_backs_known = board.roll_backs;  // nothing was begun that could be void
  return *board.start;
}

void Client::go_on() {
  const std::lock_guard lock(state_->board.mutex);
  state_->board.roll_backs_known = state_->board.roll_backs;
  state_->board.requests_open = 0;
  state_->board.wants_lease = false;
}

void Client::report_step(std::int64_t step) noexcept {
  state_->step.store(step, std::memory_order_relaxed);
}

void Client::leave() {
  {
    std::unique_lock lock(state_->board.mutex);
    state_->board.require_current(lock);
  }
  state_->tell(wire::make_message(wire::LeavingT{}));
  std::unique_lock lock(state_->board.mutex);
  // Shard 0 may be gone before its word reaches us: it has heard ours, or will miss nobody.
  ClientBoard& board = state_->board;
  board.changed.wait_for(lock, kFarewell, [&] { return board.finished || board.is_void(); });
  if (!board.finished) board.require_current(lock);
}

void Client::fail(std::string_view reason) noexcept {
  try {
    wire::FailingT failing;
    failing.reason = reason;
    state_->tell(wire::make_message(std::move(failing)));
  } catch (...) {
    return;  // out of memory: the others will miss us
  }
}

void Client::abort(std::string_view reason) noexcept {
  try {
    state_->board.fail(std::string(reason));
  } catch (...) {
    return;
  }
}

Client::Traffic Client::traffic() const {
  const std::lock_guard lock(state_->board.mutex);
  return state_->board.traffic;
}

}  // namespace syncopate::ps
