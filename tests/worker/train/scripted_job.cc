#include "tests/worker/train/scripted_job.h"

#include <algorithm>
#include <utility>

#include "models/base/errors.h"

namespace syncopate {
namespace {

// CountedVariables are a replica's own variables that report each update to the job.
class CountedVariables final : public VariableStore {
 public:
  CountedVariables(std::unique_ptr<VariableStore> inner, ScriptedJob& job)
      : inner_(std::move(inner)), job_(job) {}

  void pull(const UpdateStep& update) override { inner_->pull(update); }
  void wait_values(BucketId bucket) override { inner_->wait_values(bucket); }
  void push(BucketId bucket, const StepReport& report) override { inner_->push(bucket, report); }
  StepReport commit() override {
    const StepReport report = inner_->commit();
    job_.count(report.scores);
    return report;
  }
  CommunicationTimes times() const override { return inner_->times(); }

 private:
  std::unique_ptr<VariableStore> inner_;
  ScriptedJob& job_;
};

Tensor deep_copy(const Tensor& tensor) {
  Tensor copy = make_host_tensor(tensor.shape(), tensor.dtype());
  std::ranges::copy(tensor.bytes(), copy.bytes().begin());
  return copy;
}

}  // namespace

ScriptedJob::ScriptedJob(Strategy& strategy, std::vector<ps::SampleRange> leases, int replica)
    : strategy_(strategy), leases_(leases.begin(), leases.end()) {
  status_.live_workers = 1;
  auto& variables = strategy.replicas()[static_cast<std::size_t>(replica)].variables;
  variables = std::make_unique<CountedVariables>(std::move(variables), *this);
}

std::optional<ps::SampleRange> ScriptedJob::next_lease() {
  before_lease();
  const std::lock_guard lock(mutex_);
  if (stopping_ || leases_.empty()) return std::nullopt;
  const ps::SampleRange next = leases_.front();
  leases_.pop_front();
  return next;
}

void ScriptedJob::begin_step(const ps::SampleRange& batch) {
  check(!open_read_, "a step begins when the assignment is done");
  events.push_back("step " + std::to_string(batch.epoch) + ":" + std::to_string(batch.begin));
  trained.push_back(batch);
}

void ScriptedJob::count(const Scores& scores) {
  const std::int64_t steps = 1 + steps_of_others;
  status_.step += steps;
  status_.samples += steps * scores.num_samples;
  status_.loss += static_cast<double>(steps) * scores.loss;
  status_.metric += static_cast<double>(steps) * scores.metrics[kMainMetric];
  position_.epoch = trained.back().epoch;
  position_.offset = trained.back().end;
}

std::optional<Assignment> ScriptedJob::next_assignment() {
  const auto due = assignment_after_step.find(status_.step);
  if (due == assignment_after_step.end()) return std::nullopt;
  return as_of_now(due->second);
}

std::optional<Assignment> ScriptedJob::wait_assignment() {
  if (stopping_) {
    assignments_at_end.clear();
    const auto last = std::exchange(assignment_when_stopped, std::nullopt);
    if (!last) return std::nullopt;
    return as_of_now(*last);
  }
  if (assignments_at_end.empty()) return std::nullopt;
  const Assignment next = as_of_now(assignments_at_end.front());
  assignments_at_end.pop_front();
  return next;
}

Assignment ScriptedJob::as_of_now(Assignment assignment) const {
  assignment.status = status_;
  assignment.position = position_;
  return assignment;
}

Snapshot ScriptedJob::read_snapshot(const Assignment& assignment, bool with_slots) {
  events.push_back("read " + std::to_string(assignment.snapshot_id) +
                   (with_slots ? " with slots" : ""));
  open_read_ = assignment.snapshot_id;
  Snapshot given = deep_copy(copy ? *copy : strategy_.snapshot());
  if (!with_slots) given.slots.clear();
  return given;
}

void ScriptedJob::done(const Assignment& assignment) {
  check(open_read_ == assignment.snapshot_id, "what is done is what was read");
  open_read_.reset();
  events.push_back("done " + std::to_string(assignment.snapshot_id));
}

void ScriptedJob::refresh() {
  check(!open_read_, "values are asked for when the assignment is done");
  events.push_back("refresh");
}

void ScriptedJob::request_stop(ps::StopKind kind) {
  events.push_back("stop " + std::to_string(static_cast<int>(kind)));
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  when_asked_to_stop();
}

Snapshot deep_copy(const Snapshot& snapshot) {
  Snapshot copy{deep_copy(snapshot.values), {}, deep_copy(snapshot.state)};
  for (const Snapshot::Slot& slot : snapshot.slots) {
    copy.slots.push_back({slot.name, deep_copy(slot.values)});
  }
  return copy;
}

std::vector<ps::SampleRange> batches_in_order(std::int64_t dataset_size, std::int64_t batch_size,
                                              std::int64_t epochs) {
  std::vector<ps::SampleRange> batches;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    for (std::int64_t begin = 0; begin + batch_size <= dataset_size; begin += batch_size) {
      batches.push_back({epoch, begin, begin + batch_size});
    }
  }
  return batches;
}

}  // namespace syncopate
