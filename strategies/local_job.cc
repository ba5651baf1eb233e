#include "strategies/local_job.h"

#include <chrono>
#include <utility>

#include "models/base/errors.h"
#include "ps/coordinator/wire_conversion.h"

namespace syncopate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr ps::TaskId kLocalServer{ps::TaskId::Role::kServer, 0};

ps::ShardTime shard_time() { return Clock::now().time_since_epoch(); }

ps::TaskId worker_task(int worker) { return {ps::TaskId::Role::kWorker, worker}; }

}  // namespace

LocalJob::LocalJob(ps::wire::DeclarationT declaration)
    : server_(std::move(declaration)), coordinator_(ps::CoordinatorOptions{}) {
  const std::size_t buckets = shard().buckets().size();
  workers_.resize(static_cast<std::size_t>(server_.declaration().workers));
  for (Worker& each : workers_) each.buckets.resize(buckets);
}

void LocalJob::begin(const ps::RunPosition& start, std::span<const float> statistics) {
  {
    const std::lock_guard lock(mutex_);
    server_.begin(start, {statistics.begin(), statistics.end()});
    start_job(start);
  }
  work_everywhere();
}

// Starts the job without a network: passes the messages with which a server and workers join a job
// directly to the coordinator.
void LocalJob::start_job(const ps::RunPosition& start) {
  coordinator_.on_hello(server_.hello());
  for (int w = 0; w < num_workers(); ++w) {
    ps::wire::HelloT hello;
    hello.index = w;
    hello.world_size = num_workers();
    hello.num_servers = 1;
    hello.declaration = std::make_unique<ps::wire::DeclarationT>(server_.declaration());
    const ps::Coordinator::HelloAnswer admission = coordinator_.on_hello(hello);
    check(admission.task.has_value(), "a replica is admitted to the job of its process");
  }
  exchange_messages();
  for (int w = 0; w < num_workers(); ++w) {
    server_.join(w, worker(w).incarnation, worker(w).sequence);
    if (w > 0) deliver(worker_task(w), ps::wire::make_message(ps::wire::ReadyT{}));
  }
  ps::wire::InitialisedT initialised;
  ps::set_position(initialised, start);
  deliver(worker_task(0), ps::wire::make_message(std::move(initialised)));
  if (coordinator_.failure()) throw UsageError(*coordinator_.failure());
  check(coordinator_.has_started(), "the job starts when all replicas are ready");
}

void LocalJob::deliver(const ps::TaskId& from, const ps::wire::MessageT& message) {
  coordinator_.on_message(from, message);
  exchange_messages();
}

// Delivers messages between coordinator, server and workers until none is left. A message may cause
// the receiver to send further ones.
void LocalJob::exchange_messages() {
  for (bool busy = true; busy;) {
    busy = false;
    for (const ps::wire::MessageT& reply : server_.take_replies()) {
      busy = true;
      coordinator_.on_message(kLocalServer, reply);
    }
    for (const ps::Outgoing& outgoing : coordinator_.take_outgoing()) {
      busy = true;
      if (outgoing.to == kLocalServer) {
        server_.on_message(outgoing.message);
      } else {
        on_message(worker(outgoing.to.index), outgoing.message);
      }
    }
  }
  if (!failure_ && coordinator_.failure()) failure_ = coordinator_.failure();
}

void LocalJob::on_message(Worker& worker, const ps::wire::MessageT& message) {
  const ps::wire::BodyUnion& body = message.body;
  switch (body.type) {
    case ps::wire::Body::Welcome:
      worker.incarnation = body.AsWelcome()->incarnation;
      return;
    case ps::wire::Body::Leases: {
      const ps::wire::LeasesT& leases = *body.AsLeases();
      for (const auto& range : leases.ranges) worker.leases.push_back(ps::from_wire(range));
      worker.has_all_leases |= leases.finished;
      worker.all_granted = leases.all_granted;
      return;
    }
    case ps::wire::Body::Assignment:
      worker.assignments.push_back(*body.AsAssignment());
      return;
    case ps::wire::Body::Finished:
      worker.has_all_leases = true;
      worker.is_finished = true;
      return;
    default:
      return;  // other messages matter only on a network, or repeat coordinator_'s state
  }
}

void LocalJob::throw_if_failed() const {
  if (failure_) throw PeerError(*failure_);
}

template <typename Body>
void LocalJob::send(int worker, Body body) {
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    deliver(worker_task(worker), ps::wire::make_message(std::move(body)));
    is_due = server_.take_due();
  }
  changed_.notify_all();
  if (is_due) work_everywhere();
}

std::optional<ps::SampleRange> LocalJob::next_lease(int index) {
  Worker& mine = worker(index);
  std::unique_lock lock(mutex_);
  if (mine.leases.empty() && !mine.has_all_leases && !mine.wants_lease) {
    mine.wants_lease = true;
    lock.unlock();
    ps::wire::LeaseRequestT request;
    request.count = 1;
    send(index, request);
    lock.lock();
  }
  changed_.wait(lock, [&] {
    return failure_ || !mine.leases.empty() || mine.has_all_leases || mine.all_granted;
  });
  throw_if_failed();
  const bool ends_round = std::exchange(mine.all_granted, false);
  if (ends_round && mine.leases.empty() && !mine.has_all_leases) return ps::SampleRange{};
  mine.wants_lease = false;
  if (mine.leases.empty()) return std::nullopt;
  const ps::SampleRange range = mine.leases.front();
  mine.leases.pop_front();
  return range;
}

std::optional<ps::DroppedSteps> LocalJob::dropped_steps(int index) const {
  if (!ps::drops_gradients(ps::consistency_options(server_.declaration()))) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return workers_[static_cast<std::size_t>(index)].drops.totals();
}

ps::wire::JobStatusT LocalJob::status() const {
  const std::lock_guard lock(mutex_);
  return coordinator_.status();
}

std::optional<ps::wire::AssignmentT> LocalJob::next_assignment(int index) {
  Worker& mine = worker(index);
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  if (mine.assignments.empty()) return std::nullopt;
  std::optional<ps::wire::AssignmentT> next(std::move(mine.assignments.front()));
  mine.assignments.pop_front();
  return next;
}

std::optional<ps::wire::AssignmentT> LocalJob::wait_assignment(int index) {
  // This worker pushes nothing more. rest() tells this to the shard, which then answers the other
  // workers without waiting for pushes of this one.
  rest(index);
  // Other workers' threads write to this worker's memory until its last answers have arrived.
  for (std::size_t b = 0; b < shard().buckets().size(); ++b)
    wait_values(index, static_cast<BucketId>(b));
  {
    const Worker& mine = worker(index);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failure_ || !mine.assignments.empty() || mine.is_finished; });
  }
  return next_assignment(index);
}

std::shared_ptr<const ps::ServedSnapshot> LocalJob::snapshot(std::uint64_t id) const {
  const std::lock_guard lock(mutex_);
  throw_if_failed();
  const auto copy = server_.copy();
  check(copy != nullptr && copy->number == id, "a snapshot is kept until its assignment is done");
  return copy;
}

void LocalJob::done(int worker, std::uint64_t snapshot_id, const std::vector<double>& rules) {
  ps::wire::AssignmentDoneT done;
  done.snapshot = snapshot_id;
  done.rules = rules;
  send(worker, done);
}

void LocalJob::request_stop(int worker, ps::StopKind kind) {
  ps::wire::StopRequestT request;
  request.kind = ps::to_wire(kind);
  send(worker, request);
}

void LocalJob::leave() {
  for (int w = 0; w < num_workers(); ++w) send(w, ps::wire::LeavingT{});
}

void LocalJob::abort(std::string_view reason) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::string(reason);
  } catch (...) {
    return;  // no memory for the reason; for_each_replica() still throws the first error
  }
  changed_.notify_all();
}

void LocalJob::read(int index, BucketId bucket, std::span<float> values) {
  Worker& mine = worker(index);
  {
    const std::lock_guard lock(mutex_);
    mine.buckets[static_cast<std::size_t>(bucket)].are_awaited = true;
  }
  check(shard().read(
            {.worker = index, .incarnation = mine.incarnation, .bucket = bucket, .values = values}),
        "a replica is a member of the shard from the first step on");
  work_on(bucket);
}

void LocalJob::begin_step(int index, const ps::StepInfo& step) {
  ps::wire::PushT push;
  push.batches = ps::to_wire(step.batches);
  push.lanes = step.lanes;
  push.loss = step.loss;
  push.metric = step.metric;
  push.samples = step.samples;
  push.num_bad = step.num_bad;
  push.bad_of_batches = step.bad_of_batches;
  push.ends_step = true;
  const std::lock_guard lock(mutex_);
  Worker& mine = worker(index);
  mine.learning_rate = step.learning_rate;
  push.sequence = ++mine.sequence;
  open_steps_[{index, mine.sequence}] = {std::move(push), {step.state.begin(), step.state.end()}};
}

void LocalJob::push(int index, BucketId bucket, std::span<const float> gradient,
                    std::span<float> values) {
  ps::PushRequest request{.bucket = bucket, .values = values};
  request.gradient = {.codec = ps::Codec::kF32,
                      .num_elements = static_cast<std::int64_t>(gradient.size()),
                      .bytes = std::as_bytes(gradient)};
  {
    const std::lock_guard lock(mutex_);
    throw_if_failed();
    Worker& mine = worker(index);
    Values& own = mine.buckets[static_cast<std::size_t>(bucket)];
    request.id = {index, mine.incarnation, mine.sequence};
    request.version = own.version;
    request.learning_rate = mine.learning_rate;
    request.samples = open_steps_.at({index, mine.sequence}).push.samples;
    own.are_awaited = true;
  }
  request.arrived = shard_time();
  check(shard().push(request), "a replica is a member of the shard until the job is over");
  if (!shard().merges_pushes()) return work_on(bucket);
  work_everywhere();
  // One of the waiting threads then wakes at the deadline: this one may do something else first.
  if (shard().next_deadline()) call_helpers();
}

void LocalJob::wait_values(int index, BucketId bucket) {
  const Values& own = worker(index).buckets[static_cast<std::size_t>(bucket)];
  std::unique_lock lock(mutex_);
  for (;;) {
    throw_if_failed();
    if (!own.are_awaited) return;
    const std::uint64_t calls = help_requests_;
    ++waiting_;
    lock.unlock();
    if (shard().next_deadline()) shard().advance_to(shard_time());
    work_everywhere();
    const auto deadline = shard().next_deadline();
    lock.lock();
    const auto is_over = [&] { return failure_ || !own.are_awaited || help_requests_ != calls; };
    if (deadline) {
      changed_.wait_until(lock, Clock::time_point(*deadline), is_over);
    } else {
      changed_.wait(lock, is_over);
    }
    --waiting_;
  }
}

// After its last step a worker rests: it pushes nothing more, and the shard waits for it no longer.
void LocalJob::rest(int index) {
  const Worker& mine = worker(index);  // no mutex: only this thread changes mine.sequence
  shard().rest(index, mine.incarnation, mine.sequence);
  work_everywhere();
}

// Executes the shard's due work on the bucket, such as an update, and if this makes more work due,
// the due work on all buckets.
void LocalJob::work_on(BucketId bucket) {
  if (work_once(bucket)) work_everywhere();
}

void LocalJob::work_everywhere() {
  for (bool is_due = true; is_due;) {
    is_due = false;
    for (std::size_t b = 0; b < shard().buckets().size(); ++b) {
      if (work_once(static_cast<BucketId>(b))) is_due = true;
    }
  }
}

// Executes the shard's due work on the bucket until none is left, so that none remains while all
// threads wait. Returns whether this may have made work due on any bucket.
bool LocalJob::work_once(BucketId bucket) {
  bool is_due = false;
  const Bucket& range = shard().buckets()[static_cast<std::size_t>(bucket)];
  while (const auto piece = shard().claim(bucket)) {
    const bool is_first_of_several =
        piece->range.begin == range.begin && piece->range.end < range.end;
    if (is_first_of_several) call_helpers();
    if (shard().update(*piece) && take_events()) is_due = true;
  }
  return is_due;
}

void LocalJob::call_helpers() {
  if (waiting_ == 0) return;
  {
    const std::lock_guard lock(mutex_);
    ++help_requests_;
  }
  changed_.notify_all();
}

// Processes the shard's events. Returns whether work may have become due on any bucket.
bool LocalJob::take_events() {
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    std::vector<ps::ShardEvent> events;
    shard().take_events(events);
    for (const ps::ShardEvent& event : events) on_event(event);
    exchange_messages();
    is_due = server_.take_due();
  }
  changed_.notify_all();
  return is_due;
}

void LocalJob::on_event(const ps::ShardEvent& event) {
  using Kind = ps::ShardEvent::Kind;
  if (event.kind == Kind::kSnapshotCopied) return server_.copied();
  Values& values = worker(event.worker).buckets[static_cast<std::size_t>(event.bucket)];
  switch (event.kind) {
    case Kind::kAnswered:
      values = {.are_awaited = false, .version = event.version};
      return;
    case Kind::kCancelled:
      values.are_awaited = false;
      return;
    default:
      break;
  }
  worker(event.worker)
      .drops.add(event.sequence, event.kind == Kind::kDropped, shard().buckets().size());
  // A step's buckets are pushed in order, so the last bucket's event ends the step.
  if (static_cast<std::size_t>(event.bucket) + 1 == shard().buckets().size()) on_step_end(event);
}

void LocalJob::on_step_end(const ps::ShardEvent& event) {
  auto ended = open_steps_.extract({event.worker, event.sequence});
  check(!ended.empty(), "a step ends once");
  Step& step = ended.mapped();
  const std::uint32_t incarnation = worker(event.worker).incarnation;
  const ps::StalenessTotals staleness = shard().total_staleness();
  coordinator_.set_staleness(staleness.mean(), staleness.max);
  if (event.kind == ps::ShardEvent::Kind::kDropped) {
    return coordinator_.on_push_dropped(event.worker, incarnation, step.push);
  }
  server_.trained(event.worker, event.sequence, step.push.samples, std::move(step.statistics));
  coordinator_.on_push_applied(event.worker, incarnation, step.push, event.version);
}

}  // namespace syncopate
