// LocalJob: the values, and the work on them.
#include <utility>

#include "models/base/errors.h"
#include "strategies/local_job.h"

namespace syncopate {

void LocalJob::read(int index, BucketId bucket, std::span<float> values) {
  Worker& mine = worker(index);
  {
    const std::lock_guard lock(mutex_);
    mine.buckets[static_cast<std::size_t>(bucket)].are_awaited = true;
  }
  check(shard().read(
            {.worker = index, .incarnation = mine.incarnation, .bucket = bucket, .values = values}),
        "a replica takes part from the first step on");
  work_on(bucket);
}

void LocalJob::begin_step(int index, ps::wire::PushT ends, std::span<const float> statistics) {
  const std::lock_guard lock(mutex_);
  Worker& mine = worker(index);
  ends.sequence = ++mine.sequence;
  ends.ends_step = true;
  open_steps_[{index, mine.sequence}] = {std::move(ends), {statistics.begin(), statistics.end()}};
}

void LocalJob::push(int index, BucketId bucket, float learning_rate,
                    std::span<const float> gradient, std::span<float> values) {
  ps::PushRequest request{.bucket = bucket, .learning_rate = learning_rate, .values = values};
  request.gradient = {.codec = ps::Codec::kF32,
                      .num_elements = static_cast<std::int64_t>(gradient.size()),
                      .bytes = std::as_bytes(gradient)};
  {
    const std::lock_guard lock(mutex_);
    throw_if_failed();
    Worker& mine = worker(index);
    Values& of = mine.buckets[static_cast<std::size_t>(bucket)];
    request.id = {index, mine.incarnation, mine.sequence};
    request.version = of.version;
    of.are_awaited = true;
  }
  check(shard().push(request), "a replica takes part until the job is over");
  work_on(bucket);
}

void LocalJob::wait_values(int index, BucketId bucket) {
  const Values& of = worker(index).buckets[static_cast<std::size_t>(bucket)];
  std::unique_lock lock(mutex_);
  for (;;) {
    throw_if_failed();
    if (!of.are_awaited) return;
    const std::uint64_t calls = calls_for_help_;
    ++waiting_;
    lock.unlock();
    work_everywhere();
    lock.lock();
    changed_.wait(lock, [&] { return failure_ || !of.are_awaited || calls_for_help_ != calls; });
    --waiting_;
  }
}

void LocalJob::rest(int index) {
  const Worker& mine = worker(index);  // sequence: its own thread's
  shard().rest(index, mine.incarnation, mine.sequence);
  work_everywhere();
}

void LocalJob::work_on(BucketId bucket) {
  if (work_once(bucket)) work_everywhere();
}

void LocalJob::work_everywhere() {
  for (bool is_due = true; is_due;) {
    is_due = false;
    for (std::size_t b = 0; b < lines_.size(); ++b) {
      if (work_once(static_cast<BucketId>(b))) is_due = true;
    }
  }
}

// Whoever ends a piece of work looks for the next one on its bucket, so that nothing that is due
// lies there while all wait.
bool LocalJob::work_once(BucketId bucket) {
  bool is_due = false;
  std::vector<ps::ShardEvent> events;
  const Bucket& range = shard().buckets()[static_cast<std::size_t>(bucket)];
  while (const auto piece = shard().claim(bucket)) {
    // Of the first of several pieces.
    if (piece->range.begin == range.begin && piece->range.end < range.end) call_helpers();
    events.clear();
    shard().update(*piece, events);
    if (!events.empty() && take_events(events)) is_due = true;
  }
  return is_due;
}

void LocalJob::call_helpers() {
  if (waiting_ == 0) return;
  {
    const std::lock_guard lock(mutex_);
    ++calls_for_help_;
  }
  changed_.notify_all();
}

bool LocalJob::take_events(const std::vector<ps::ShardEvent>& events) {
  bool is_due = false;
  {
    const std::lock_guard lock(mutex_);
    for (const ps::ShardEvent& event : events) {
      EventLine& line = lines_[static_cast<std::size_t>(event.bucket)];
      line.early.emplace(event.order, event);
      for (auto next = line.early.begin(); next != line.early.end() && next->first == line.next;
           next = line.early.begin()) {
        happened(next->second);
        line.early.erase(next);
        ++line.next;
      }
    }
    settle();
    is_due = server_.take_due();
  }
  changed_.notify_all();
  return is_due;
}

void LocalJob::happened(const ps::ShardEvent& event) {
  using Kind = ps::ShardEvent::Kind;
  if (event.kind == Kind::kSnapshotCopied) return server_.copied();
  Values& of = worker(event.worker).buckets[static_cast<std::size_t>(event.bucket)];
  switch (event.kind) {
    case Kind::kAnswered:
      of = {.are_awaited = false, .version = event.version};
      return;
    case Kind::kForgotten:
      of.are_awaited = false;
      return;
    default:
      break;
  }
  if (event.kind == Kind::kApplied) staleness_.add(event.staleness);
  // Buckets are pushed in their order.
  if (static_cast<std::size_t>(event.bucket) + 1 == lines_.size()) step_ended(event);
}

void LocalJob::step_ended(const ps::ShardEvent& event) {
  auto ended = open_steps_.extract({event.worker, event.sequence});
  check(!ended.empty(), "a step ends once");
  Step& step = ended.mapped();
  const std::uint32_t incarnation = worker(event.worker).incarnation;
  coordinator_.note_staleness(staleness_.mean(), staleness_.max());
  if (event.kind == ps::ShardEvent::Kind::kDropped) {
    return coordinator_.dropped(event.worker, incarnation, step.push);
  }
  server_.trained(event.worker, event.sequence, step.push.samples, std::move(step.statistics));
  coordinator_.trained(event.worker, incarnation, step.push);
}

}  // namespace syncopate
