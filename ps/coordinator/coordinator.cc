#include "ps/coordinator/coordinator.h"

#include <algorithm>
#include <utility>

#include "models/base/errors.h"
#include "models/base/log.h"
#include "ps/coordinator/cuts.h"
#include "ps/coordinator/departures.h"
#include "ps/coordinator/hello_check.h"
#include "ps/coordinator/job.h"
#include "ps/coordinator/lease_queue.h"
#include "ps/coordinator/meeting.h"
#include "ps/coordinator/restart.h"
#include "ps/coordinator/saved_job.h"
#include "ps/coordinator/server_recovery.h"
#include "ps/coordinator/text_exchange.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate::ps {
namespace {

using Phase = WorkerRecord::Phase;
using ServerPhase = ServerRecord::Phase;

}  // namespace

struct Coordinator::State {
  explicit State(CoordinatorOptions options)
      : job(std::move(options)),
        leases(job),
        cuts(job, leases),
        meeting(job, leases),
        departures(job, leases, cuts),
        exchange(job),
        recovery(job, leases, cuts, meeting, exchange) {}

  void hear_worker(int worker, const wire::BodyUnion& body);
  void hear_server(int server, const wire::BodyUnion& body);
  // Of one that trains, and not from before a server went back.
  bool counts(WorkerId worker, std::uint32_t incarnation, const wire::PushT& push) const;
  // Whatever has become possible happens.
  void advance();

  Job job;
  LeaseQueue leases;
  Cuts cuts;
  Meeting meeting;
  Departures departures;
  TextExchange exchange;
  ServerRecovery recovery;
};

Coordinator::Coordinator(CoordinatorOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

Coordinator::~Coordinator() = default;

Coordinator::Admission Coordinator::admit(const wire::HelloT& hello) {
  State& state = *state_;
  Job& job = state.job;
  if (auto refused = find_refusal(job, hello)) {
    // The others would wait for it in vain. A stranger, or one of before, is nobody they wait for.
    if (refused->is_usage_error && job.phase == Job::Phase::kMeeting) job.fail(refused->line);
    return {std::nullopt, 0, wire::make_message(std::move(*refused))};
  }
  const bool is_new = hello.incarnation == 0;
  Admission admission;
  if (hello.role == 0) {
    if (!is_new) {
      state.leases.keep(hello.index, from_wire(hello.held));
      state.cuts.tell_again(hello.index);
      state.meeting.worker_calls_again(hello);
    } else {
      if (!job.workers.empty()) state.departures.drop_worker(hello.index, "was started again");
      state.meeting.worker_calls(hello);
    }
    admission.party = {Party::Role::kWorker, hello.index};
    admission.incarnation = job.worker(hello.index).incarnation;
  } else {
    if (is_new) {
      // Lost first: the newcomer may have the file of a cut that is abandoned with its predecessor,
      // and is not told to remove it.
      state.departures.drop_server(hello.index);
      state.meeting.server_calls(hello);
    } else {
      state.cuts.abandon();  // it may not have got what was sent last
      state.meeting.server_calls_again(hello);
    }
    admission.party = {Party::Role::kServer, hello.index};
    admission.incarnation = job.server(hello.index).incarnation;
  }
  state.advance();
  return admission;
}

void Coordinator::hear(const Party& from, const wire::MessageT& message) {
  State& state = *state_;
  const Job& job = state.job;
  if (job.phase == Job::Phase::kOver || from.index < 0) return;
  if (from.role == Party::Role::kWorker) {
    if (from.index >= job.num_workers() || !job.is_present(from.index)) return;
    state.hear_worker(from.index, message.body);
  } else {
    if (from.index >= job.num_servers()) return;
    const ServerPhase at = job.server(from.index).phase;
    if (at == ServerPhase::kAbsent || at == ServerPhase::kLost) return;
    state.hear_server(from.index, message.body);
  }
  state.advance();
}

void Coordinator::State::hear_worker(int worker, const wire::BodyUnion& body) {
  switch (body.type) {
    case wire::Body::Failing:
      return departures.worker_fails(worker, body.AsFailing()->reason);
    case wire::Body::Leaving:
      return departures.worker_leaves(worker);
    case wire::Body::StopRequest:
      // Workers in step tell one another, with their pushes.
      if (const auto kind = stop_kind_from_wire(body.AsStopRequest()->kind);
          kind && !job.is_in_step()) {
        leases.stop(*kind);
      }
      return;
    default:
      break;
  }
  if (!job.is_welcome(worker)) return;
  switch (body.type) {
    case wire::Body::Initialised:
      return meeting.initialised(worker, *body.AsInitialised());
    case wire::Body::Ready:
      return meeting.ready(worker, *body.AsReady());
    case wire::Body::LeaseRequest:
      return leases.request(worker, body.AsLeaseRequest()->count);
    case wire::Body::AppointmentDone:
      return cuts.hear(worker, *body.AsAppointmentDone());
    case wire::Body::Exchange:
      return exchange.hear(worker, *body.AsExchange());
    default:
      return;
  }
}

void Coordinator::State::hear_server(int server, const wire::BodyUnion& body) {
  switch (body.type) {
    case wire::Body::Declared:
      return meeting.declared(server, *body.AsDeclared());
    case wire::Body::Frozen:
      return cuts.hear(server, *body.AsFrozen());
    case wire::Body::CutDone:
      return cuts.hear(server, *body.AsCutDone());
    case wire::Body::RollBack:
      return recovery.hear(server, *body.AsRollBack());
    case wire::Body::Failing:
      return departures.lose_server(
          server, describe_server(server) + " failed: " + body.AsFailing()->reason);
    default:
      return;
  }
}

void Coordinator::lose(const Party& party, const std::string& reason) {
  State& state = *state_;
  if (state.job.phase == Job::Phase::kOver || party.index < 0) return;
  if (party.role == Party::Role::kWorker) {
    if (party.index < state.job.num_workers()) state.departures.lose_worker(party.index, reason);
  } else if (party.index < state.job.num_servers()) {
    state.departures.lose_server(party.index, reason);
  }
  state.advance();
}

void Coordinator::end_rendezvous(const std::string& patience) {
  state_->departures.give_up(patience);
}

void Coordinator::trained(WorkerId worker, std::uint32_t incarnation, const wire::PushT& push) {
  State& state = *state_;
  if (!state.counts(worker, incarnation, push)) return;
  if (state.leases.trained(worker, push)) state.cuts.count_batch();
  state.advance();
}

void Coordinator::dropped(WorkerId worker, std::uint32_t incarnation, const wire::PushT& push) {
  State& state = *state_;
  if (!state.counts(worker, incarnation, push)) return;
  state.leases.dropped(worker, push);
  state.advance();
}

bool Coordinator::State::counts(WorkerId worker, std::uint32_t incarnation,
                                const wire::PushT& push) const {
  if (worker < 0 || worker >= job.num_workers() || !job.is_training(worker)) return false;
  const WorkerRecord& record = job.worker(worker);
  return record.incarnation == incarnation && push.sequence > record.began_after;
}

void Coordinator::note_staleness(double mean, std::uint64_t max) {
  state_->leases.note_staleness(mean, max);
}

void Coordinator::request_snapshot() {
  state_->cuts.request_snapshot();
  state_->advance();
}

void Coordinator::State::advance() {
  // One step makes the next one possible; each says something to somebody.
  for (std::size_t said = job.outgoing.size() + 1; said != job.outgoing.size();) {
    said = job.outgoing.size();
    if (job.phase == Job::Phase::kOver) return;
    recovery.advance();
    cuts.advance();  // which end before others are let in
    meeting.advance();
    leases.advance();
    exchange.advance();
    departures.advance();
  }
}

std::vector<Outgoing> Coordinator::take_outgoing() {
  return std::exchange(state_->job.outgoing, {});
}

bool Coordinator::has_started() const noexcept {
  return state_->job.phase == Job::Phase::kTraining ||
         state_->job.phase == Job::Phase::kFinishing ||
         (state_->job.phase == Job::Phase::kOver && !state_->job.failure);
}

bool Coordinator::is_over() const noexcept { return state_->job.phase == Job::Phase::kOver; }

const std::optional<std::string>& Coordinator::failure() const noexcept {
  return state_->job.failure;
}

bool Coordinator::has_lost_variables() const noexcept { return state_->job.has_lost_variables; }

wire::JobStatusT Coordinator::status() const { return state_->leases.status(); }

int Coordinator::live_workers() const noexcept { return state_->job.count_present(); }

std::vector<int> Coordinator::joining() const {
  const Job& job = state_->job;
  std::vector<int> joining;
  if (!job.all_servers_serve() || job.is_rolling_back) return joining;
  for (int w = 0; w < job.num_workers(); ++w) {
    if (job.worker(w).phase == Phase::kJoining) joining.push_back(w);
  }
  return joining;
}

std::optional<std::string> Coordinator::awaited() const { return state_->departures.awaited(); }

std::vector<std::byte> Coordinator::save() const {
  check(state_->leases.has_begun(), "a job is saved before it has begun");
  return to_bytes(state_->cuts.save());
}

void Coordinator::restore(std::span<const std::byte> saved_bytes) {
  go_on_from(saved_job_of(saved_bytes), state_->job, state_->leases, state_->cuts);
}

}  // namespace syncopate::ps
