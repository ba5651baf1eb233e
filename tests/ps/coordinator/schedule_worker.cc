#include "tests/ps/coordinator/schedule_worker.h"

#include <algorithm>
#include <utility>

#include "ps/coordinator/declaration.h"

namespace syncopate::ps {
namespace {

constexpr std::size_t kAhead = 2;
constexpr std::size_t kStepsOfRound = 3;

}  // namespace

void ScheduledWorker::start() {
  sent.clear();
  inbox.clear();
  assignments.clear();
  stage_ = Stage::kRegistering;
  incarnation_ = 0;
  sequence_ = 0;
  server_0_incarnation_ = 0;
  leases_.clear();
  round_.clear();
  requested_ = 0;
  is_dismissed_ = has_finished_ = initialises_ = is_welcome_ = knows_all_granted_ = false;
  to_push_.clear();
  unanswered_.clear();
  undone_.clear();
  versions_.clear();
  shards_.clear();
  to_join_.clear();
  is_alive = true;
  ++process_;
  call_ = 1;
  send_hello();
}

void ScheduledWorker::call_again() {
  sent.clear();
  is_welcome_ = false;
  ++call_;
  send_hello();
}

void ScheduledWorker::send_hello(bool with_declaration) {
  wire::HelloT hello;
  hello.role = 0;
  hello.index = index_;
  hello.world_size = declaration_.workers;
  hello.num_servers = static_cast<int>(servers_.size());
  hello.host = std::string(1, 'h');  // GCC 12 warns of a literal with -fsanitize
  hello.pid = process_;
  hello.incarnation = incarnation_;
  hello.sequence = sequence_;
  hello.call = call_;
  for (const SampleRange& range : leases_) hello.held.push_back(to_wire(range));
  for (const SampleRange& range : round_) hello.held.push_back(to_wire(range));
  if (unanswered_.contains(0)) {
    for (const SampleRange& range : batches_) hello.held.push_back(to_wire(range));
  }
  hello.fingerprint = fingerprint_of(declaration_);
  if (with_declaration) hello.declaration = std::make_unique<wire::DeclarationT>(declaration_);
  send(std::move(hello));
}

void ScheduledWorker::stop(int kind) {
  wire::StopRequestT request;
  request.kind = kind;
  send(request);
}

void ScheduledWorker::learn(const std::vector<std::unique_ptr<wire::ServerAddressT>>& addresses) {
  for (const auto& address : addresses) {
    std::uint32_t& known = shards_[address->index];
    if (address->incarnation != 0 && address->incarnation != known) to_join_.insert(address->index);
    if (address->incarnation != 0) known = address->incarnation;
  }
}

void ScheduledWorker::on_message(const wire::MessageT& message) {
  const wire::BodyUnion& body = message.body;
  switch (body.type) {
    case wire::Body::Welcome:
      if (body.AsWelcome()->call != call_) return;  // of a lost connection
      // If Welcome contains another incarnation than before, server 0 was restarted and does not
      // know the previous incarnation of this worker.
      if (incarnation_ != body.AsWelcome()->incarnation) {
        roll_back();
        incarnation_ = body.AsWelcome()->incarnation;
      }
      is_welcome_ = true;
      // After Welcome the worker repeats the request whose answer it waits for.
      if (stage_ == Stage::kReady) stage_ = Stage::kConnecting;
      requested_ = 0;
      is_dismissed_ = false;
      initialises_ = body.AsWelcome()->initialises;
      return learn(body.AsWelcome()->servers);
    case wire::Body::DeclarationRequest:
      return send_hello(/*with_declaration=*/true);
    case wire::Body::Roster:
      return learn(body.AsRoster()->servers);
    case wire::Body::Start:
      if (stage_ == Stage::kReady) stage_ = Stage::kTraining;
      steps_left_ = declaration_.total_steps - body.AsStart()->step;
      return;
    case wire::Body::Leases: {
      if (!is_welcome_) return;  // of a lost connection
      const wire::LeasesT& leases = *body.AsLeases();
      requested_ = std::max(requested_ - static_cast<int>(leases.ranges.size()), 0);
      for (const wire::SampleRange& range : leases.ranges) {
        leases_.push_back({range.epoch(), range.begin(), range.end()});
      }
      is_dismissed_ = is_dismissed_ || leases.finished;
      knows_all_granted_ = leases.all_granted;
      return;
    }
    case wire::Body::Assignment:
      assignments.push_back(*body.AsAssignment());
      undone_.push_back(body.AsAssignment()->snapshot);
      return;
    case wire::Body::RollBack:
      server_0_incarnation_ = body.AsRollBack()->incarnation;
      // A synchronous worker leaves by itself, and goes back until shard 0 has confirmed that.
      if (stage_ != Stage::kLeft || (is_synchronous() && !has_finished_)) roll_back();
      return;
    case wire::Body::Finished:
      has_finished_ = true;
      return;
    case wire::Body::Failing:
      failure_ = body.AsFailing()->reason;
      return;
    case wire::Body::Refused:
      failure_ = body.AsRefused()->line;
      return;
    default:
      return;
  }
}

void ScheduledWorker::roll_back() {
  stage_ = Stage::kConnecting;
  initialises_ = knows_all_granted_ = false;
  leases_.clear();
  round_.clear();
  requested_ = 0;
  is_dismissed_ = false;
  to_push_.clear();
  unanswered_.clear();
  for (int s = 0; s < static_cast<int>(servers_.size()); ++s) to_join_.insert(s);
}

void ScheduledWorker::join(int server) {
  to_join_.erase(server);
  ScheduledServer& at = servers_[static_cast<std::size_t>(server)];
  // A worker that joins a server sends its unanswered push again.
  const bool is_under_way = unanswered_.contains(server);
  at.join(index_, incarnation_, is_under_way ? sequence_ - 1 : sequence_);
  versions_[server] = at.version();
  if (is_under_way) to_push_.insert(server);
}

void ScheduledWorker::begin_step() {
  if (is_synchronous()) {
    --steps_left_;
    batches_.clear();
  } else {
    if (!has_rounds()) train();
    batches_ = std::exchange(round_, {});
  }
  ++sequence_;
  for (int s = 0; s < static_cast<int>(servers_.size()); ++s) {
    to_push_.insert(s);
    unanswered_.insert(s);
  }
}

void ScheduledWorker::train() {
  round_.push_back(leases_.front());
  leases_.pop_front();
}

bool ScheduledWorker::ends_round() const {
  if (round_.empty()) return false;
  const bool has_none = leases_.empty() && (knows_all_granted_ || is_dismissed_);
  return round_.size() == kStepsOfRound || has_none;
}

void ScheduledWorker::push_to(int server) {
  to_push_.erase(server);
  ScheduledServer& at = servers_[static_cast<std::size_t>(server)];
  // A push to a dead or restarted server is lost.
  if (at.is_alive && at.incarnation() == shards_[server]) {
    at.push({{index_, incarnation_, sequence_}, versions_[server], batches_});
  }
}

void ScheduledWorker::answered(int server, const TrainingPush& push) {
  if (!is_alive || push.id.incarnation != incarnation_ || push.id.sequence != sequence_) return;
  unanswered_.erase(server);
  versions_[server] = push.version;
}

std::vector<std::function<void()>> ScheduledWorker::choices() {
  std::vector<std::function<void()>> can;
  if (!is_alive || stage_ == Stage::kLeft) return can;
  for (const int s : to_join_) {
    const ScheduledServer& at = servers_[static_cast<std::size_t>(s)];
    const bool is_there = at.is_alive && at.is_serving() && at.incarnation() == shards_[s];
    if (is_there) can.emplace_back([this, s] { join(s); });
  }
  if (stage_ == Stage::kConnecting && to_join_.empty()) {
    can.emplace_back([this] {
      stage_ = Stage::kReady;
      if (initialises_) {
        send(start_);
      } else {
        wire::ReadyT ready;
        ready.sequence = sequence_;
        ready.incarnation = server_0_incarnation_;
        send(ready);
      }
    });
  }
  if (!undone_.empty()) {
    can.emplace_back([this] {
      wire::AssignmentDoneT done;
      done.snapshot = undone_.front();
      undone_.pop_front();
      send(done);
    });
  }
  if (stage_ != Stage::kTraining) return can;
  for (const int s : to_push_) {
    if (!to_join_.contains(s)) can.emplace_back([this, s] { push_to(s); });
  }
  const bool is_idle = to_push_.empty() && unanswered_.empty();
  const bool is_free = is_idle && to_join_.empty();
  const bool has_batch = !leases_.empty() && round_.size() < kStepsOfRound;
  // Within a round, a worker needs no server.
  const bool trains = has_rounds() && has_batch && (is_free || !round_.empty());
  if (trains) can.emplace_back([this] { train(); });
  const bool has_work = is_synchronous() ? steps_left_ > 0
                        : has_rounds()   ? ends_round()
                                         : has_batch;
  if (is_free && has_work) can.emplace_back([this] { begin_step(); });
  const bool wants_more = leases_.size() + static_cast<std::size_t>(requested_) < kAhead;
  if (!is_synchronous() && !is_dismissed_ && wants_more) {
    can.emplace_back([this] {
      ++requested_;
      wire::LeaseRequestT request;
      request.count = 1;
      send(request);
    });
  }
  const bool is_done = is_synchronous() ? steps_left_ <= 0 && is_idle : has_finished_;
  if (is_done) {
    can.emplace_back([this] {
      stage_ = Stage::kLeft;
      send(wire::LeavingT{});
    });
  }
  return can;
}

}  // namespace syncopate::ps
