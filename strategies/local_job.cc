#include "strategies/local_job.h"

#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate {
namespace {

constexpr ps::Party kServer{ps::Party::Role::kServer, 0};

ps::Party party_of(int worker) { return {ps::Party::Role::kWorker, worker}; }

}  // namespace

LocalJob::LocalJob(ps::wire::DeclarationT declaration)
    : server_(std::move(declaration)), coordinator_(ps::CoordinatorOptions{}) {
  const std::size_t buckets = shard().buckets().size();
  workers_.resize(static_cast<std::size_t>(server_.declaration().workers));
  for (Worker& each : workers_) each.buckets.resize(buckets);
  lines_.resize(buckets);
}

void LocalJob::begin(const ps::RunPosition& start, std::span<const float> statistics) {
  {
    const std::lock_guard lock(mutex_);
    server_.begin(start.step, {statistics.begin(), statistics.end()});
    meet(start);
  }
  work_everywhere();
}

void LocalJob::meet(const ps::RunPosition& start) {
  coordinator_.admit(server_.hello());
  for (int w = 0; w < num_workers(); ++w) {
    ps::wire::HelloT hello;
    hello.index = w;
    hello.world_size = num_workers();
    hello.num_servers = 1;
    hello.declaration = std::make_unique<ps::wire::DeclarationT>(server_.declaration());
    const ps::Coordinator::Admission admission = coordinator_.admit(hello);
    check(admission.party.has_value(), "a replica is welcome in its own job");
  }
  settle();
  for (int w = 0; w < num_workers(); ++w) {
    server_.join(w, worker(w).incarnation, worker(w).sequence);
    if (w > 0) hear(party_of(w), ps::wire::make_message(ps::wire::ReadyT{}));
  }
  ps::wire::InitialisedT initialised;
  ps::set_position(initialised, start);
  hear(party_of(0), ps::wire::make_message(std::move(initialised)));
  if (coordinator_.failure()) throw UsageError(*coordinator_.failure());
  check(coordinator_.has_started(), "all replicas are there");
}

void LocalJob::hear(const ps::Party& from, const ps::wire::MessageT& message) {
  coordinator_.hear(from, message);
  settle();
}

// What the one says makes the other say something.
void LocalJob::settle() {
  for (bool busy = true; busy;) {
    busy = false;
    for (const ps::wire::MessageT& reply : server_.take_replies()) {
      busy = true;
      coordinator_.hear(kServer, reply);
    }
    for (const ps::Outgoing& outgoing : coordinator_.take_outgoing()) {
      busy = true;
      if (outgoing.to == kServer) {
        server_.obey(outgoing.message);
      } else {
        tell(worker(outgoing.to.index), outgoing.message);
      }
    }
  }
  if (!failure_ && coordinator_.failure()) failure_ = coordinator_.failure();
}

void LocalJob::tell(Worker& worker, const ps::wire::MessageT& message) {
  const ps::wire::BodyUnion& body = message.body;
  switch (body.type) {
    case ps::wire::Body::Welcome:
      worker.incarnation = body.AsWelcome()->incarnation;
      return;
    case ps::wire::Body::Leases: {
      const ps::wire::LeasesT& leases = *body.AsLeases();
      for (const auto& range : leases.ranges) worker.leases.push_back(ps::from_wire(range));
      worker.has_all_leases |= leases.finished;
      return;
    }
    case ps::wire::Body::Appointment:
      worker.appointments.push_back(*body.AsAppointment());
      return;
    case ps::wire::Body::Finished:
      worker.has_all_leases = true;
      worker.is_finished = true;
      return;
    default:
      return;  // what only matters over a network, or is seen in the coordinator itself
  }
}

void LocalJob::throw_if_failed() const {
  if (failure_) throw PeerError(*failure_);
}

template <typename Body>
void LocalJob::say(int worker, Body body) {
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    hear(party_of(worker), ps::wire::make_message(std::move(body)));
    is_due = server_.take_due();
  }
  changed_.notify_all();
  if (is_due) work_everywhere();
}

std::optional<ps::SampleRange> LocalJob::next_lease(int index) {
  Worker& mine = worker(index);
  std::unique_lock lock(mutex_);
  if (mine.leases.empty() && !mine.has_all_leases) {
    lock.unlock();
    ps::wire::LeaseRequestT request;
    request.count = 1;
    say(index, request);
    lock.lock();
  }
  changed_.wait(lock, [&] { return failure_ || !mine.leases.empty() || mine.has_all_leases; });
  throw_if_failed();
  if (mine.leases.empty()) return std::nullopt;
  const ps::SampleRange range = mine.leases.front();
  mine.leases.pop_front();
  return range;
}

JobStatus LocalJob::status() const {
  const std::lock_guard lock(mutex_);
  return job_status_of(coordinator_.status());
}

std::optional<Appointment> LocalJob::appointment(int index) {
  Worker& mine = worker(index);
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  if (mine.appointments.empty()) return std::nullopt;
  const Appointment next = appointment_of(mine.appointments.front());
  mine.appointments.pop_front();
  return next;
}

std::optional<Appointment> LocalJob::wait_appointment(int index) {
  // Others write to this worker's memory until the last answers have come. Those that wait for this
  // one to catch up would be without theirs: it pushes nothing more.
  rest(index);
  for (std::size_t b = 0; b < lines_.size(); ++b) wait_values(index, static_cast<BucketId>(b));
  {
    const Worker& mine = worker(index);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_ || !mine.appointments.empty() || mine.is_finished; });
  }
  return appointment(index);
}

std::shared_ptr<const ps::CutCopy> LocalJob::copy(std::uint64_t cut) const {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  const auto copy = server_.copy();
  check(copy != nullptr && copy->cut == cut, "a cut is kept until its appointment is done");
  return copy;
}

void LocalJob::done(int worker, std::uint64_t cut) {
  ps::wire::AppointmentDoneT done;
  done.cut = cut;
  say(worker, done);
}

void LocalJob::request_stop(int worker, ps::StopKind kind) {
  ps::wire::StopRequestT request;
  request.kind = ps::to_wire(kind);
  say(worker, request);
}

void LocalJob::leave() {
  for (int w = 0; w < num_workers(); ++w) say(w, ps::wire::LeavingT{});
}

void LocalJob::abort(std::string_view reason) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::string(reason);
  } catch (...) {
    return;  // out of memory: whoever threw is heard of when the others come to an end
  }
  changed_.notify_all();
}

}  // namespace syncopate
