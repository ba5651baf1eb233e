// Client: what shard 0 hands out, asks for and passes on.
#include "ps/client/client_state.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {

std::optional<SampleRange> Client::next_lease() {
  std::unique_lock lock(state_->board.mutex);
  ClientBoard& board = state_->board;
  board.require_current(lock);
  if (board.leases.empty() && !board.leases_finished) {
    board.wants_lease = true;
    lock.unlock();
    state_->tell(lease_request());
    lock.lock();
  }
  board.wait(lock, [&] { return !board.leases.empty() || board.leases_finished; });
  board.wants_lease = false;
  if (board.leases.empty()) return std::nullopt;
  const SampleRange range = board.leases.front();
  board.leases.pop_front();
  board.in_hand.push_back(range);
  return range;
}

wire::JobStatusT Client::status() const {
  const std::lock_guard lock(state_->board.mutex);
  return state_->board.status;
}

std::optional<wire::AppointmentT> Client::appointment() {
  std::unique_lock lock(state_->board.mutex);
  ClientBoard& board = state_->board;
  board.throw_if_failed();
  board.require_current(lock);
  if (board.appointments.empty()) return std::nullopt;
  wire::AppointmentT next = board.appointments.front();
  board.appointments.pop_front();
  return next;
}

std::optional<wire::AppointmentT> Client::wait_appointment() {
  ClientBoard& board = state_->board;
  {
    std::unique_lock lock(board.mutex);
    board.wait(lock, [&] { return !board.appointments.empty() || board.finished; });
  }
  return appointment();
}

void Client::done(std::uint64_t cut) {
  {
    const std::lock_guard lock(state_->board.mutex);
    state_->board.is_appointment_done |= state_->board.appointed_cut == cut;
  }
  wire::AppointmentDoneT done;
  done.cut = cut;
  state_->tell(wire::make_message(std::move(done)));
}

void Client::request_stop(StopKind kind) {
  wire::StopRequestT request;
  request.kind = to_wire(kind);
  state_->tell(wire::make_message(std::move(request)));
}

std::vector<std::string> Client::exchange(std::string_view mine) {
  State& state = *state_;
  std::uint64_t round = 0;
  {
    std::unique_lock lock(state.board.mutex);
    state.board.require_current(lock);
    round = ++state.board.round;
  }
  wire::ExchangeT message;
  message.round = round;
  message.text.assign(mine.begin(), mine.end());
  {
    const std::lock_guard lock(state.mutex);
    state.open_exchange = message;
  }
  state.tell(wire::make_message(std::move(message)));
  std::unique_lock lock(state.board.mutex);
  state.board.wait(lock, [&] { return state.board.exchanged.contains(round); });
  {
    const std::lock_guard told(state.mutex);
    state.open_exchange.reset();
  }
  auto texts = std::move(state.board.exchanged.at(round));
  state.board.exchanged.erase(round);
  return texts;
}

}  // namespace syncopate::ps
